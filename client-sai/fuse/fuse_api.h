// Includes libfuse's low-level interface in the one API version that this code uses.
#ifndef MOSA_CLIENT_SAI_FUSE_FUSE_API_H_
#define MOSA_CLIENT_SAI_FUSE_FUSE_API_H_

#define FUSE_USE_VERSION 312
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <fuse_lowlevel.h>
#pragma GCC diagnostic pop

#endif  // MOSA_CLIENT_SAI_FUSE_FUSE_API_H_
