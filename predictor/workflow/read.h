// Readers of workflow descriptions: WfFormat 1.3 to 1.6 of WfCommons (JSON), and Mosa's own form
// (YAML or JSON). Pure: text in, a workflow or faults out.
//
// Mosa's own form:
//
//   name: words
//   shell: [/bin/sh, -e, -c]                      # optional: instead of bash with pipefail
//   tasks:
//     - id: split
//       command: split -n l/2 -d book.txt part.   # for the shell; a list of words needs none
//       inputs: [book.txt]                        # paths below the run's directory
//       outputs: [part.00, part.01]
//     - id: count-0
//       command: wc -w < part.00 > words.0
//       inputs: [part.00]
//       outputs: [words.0]
//       after: [other]                            # optional: order without a file
//       stage: count                              # optional: what tasks of one kind share
//       runtime: 2.5                              # optional: expected seconds
//   files:                                        # optional: what is known or wanted of files
//     part.00: {size: 10M, pattern: pipeline}     # hints as in `user.mosa.*`; they win over
//                                                 # what the graph suggests
//
// A word or path that is not UTF-8 is written as its Base64 (RFC 4648, section 4): {b64: cGFydC7/}.
//
// WfFormat: files are named by path (1.3, 1.4: `path` + `name`) or id (1.5, 1.6). The order comes
// from files, `parents` and `children`. `command.arguments` are words; one that begins with '-' and
// contains a blank ("--name x") is an option and its value, as WfBench writes them.
#ifndef MOSA_PREDICTOR_WORKFLOW_READ_H_
#define MOSA_PREDICTOR_WORKFLOW_READ_H_

#include <string_view>

#include "predictor/workflow/document.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Reads any of the forms. The workflow's name is the text's, else `default_name`. `directories` are
// absolute names of the run's directory, as in WorkflowDraft.
BuildResult ReadWorkflow(std::string_view text, std::string_view default_name,
                         std::vector<std::string> directories = {});

// Readers of one form, for a parsed text. They return a draft and only faults of form.
struct DraftResult {
  WorkflowDraft draft;
  std::vector<std::string> faults;
};
DraftResult ReadOwnForm(const Value& root);
DraftResult ReadWfFormat(const Value& root);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_READ_H_
