# Completion of mosa for bash. Written by tests/docs/docs_test.py --write, of what 'mosa --help' prints.

# The commands and the options that may follow a command.
_mosa_of() {
  below= flags=
  case $1 in
    '')
      below="cluster status node stat where hint stage lost adopt secret version run workflow \
        identify forecast predict explore advise plan compare watch report top residence log \
        follow trace bench envelope capacity"
      flags="-h --help --json --version"
      ;;
    'cluster')
      below="up down restart status exec"
      flags="-h --help --json"
      ;;
    'cluster up')
      flags="-h --help --name --dir --hosts --rate --ram --chunk-size --stripe-width \
        --default-placement --forecasts --no-passthrough --allow-other --plain --dry-run --json"
      ;;
    'cluster down')
      flags="-h --help --name --dir --discard --stage-out -y --yes --dry-run --json"
      ;;
    'cluster restart')
      flags="-h --help --name --dir --json"
      ;;
    'cluster status')
      flags="-h --help --name --dir --json"
      ;;
    'cluster exec')
      flags="-h --help --name --dir --json"
      ;;
    'status')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'node')
      below="list drain undrain"
      flags="-h --help --json"
      ;;
    'node list')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'node drain')
      flags="-h --help --wait --manager --secret --name --dir --json"
      ;;
    'node undrain')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'stat')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'where')
      flags="-h --help --from --chunks --cost --hosts --in-store --manager --secret --name --dir \
        --json"
      ;;
    'hint')
      below="get set explain rule"
      flags="-h --help --json"
      ;;
    'hint get')
      flags="-h --help --in-store --manager --secret --name --dir --json"
      ;;
    'hint set')
      flags="-h --help --in-store --manager --secret --name --dir --json"
      ;;
    'hint explain')
      flags="-h --help --in-store --manager --secret --name --dir --json"
      ;;
    'hint rule')
      below="add list remove"
      flags="-h --help --json"
      ;;
    'hint rule add')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'hint rule list')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'hint rule remove')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'stage')
      below="in out check"
      flags="-h --help --json"
      ;;
    'stage in')
      flags="-h --help --hint --compare --jobs --manifest --mount --hosts --exec --manager \
        --secret --name --dir --json"
      ;;
    'stage out')
      flags="-h --help --unstaged --compare --jobs --manifest --mount --hosts --exec --manager \
        --secret --name --dir --json"
      ;;
    'stage check')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'lost')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'adopt')
      flags="-h --help --all --discard --manager --secret --name --dir --json"
      ;;
    'secret')
      below="create issue rotate show"
      flags="-h --help --json"
      ;;
    'secret create')
      flags="-h --help --json"
      ;;
    'secret issue')
      flags="-h --help --role --uid --node --days --json"
      ;;
    'secret rotate')
      flags="-h --help --json"
      ;;
    'secret show')
      flags="-h --help --json"
      ;;
    'version')
      flags="-h --help --json"
      ;;
    'run')
      flags="-h --help --cluster --name --dir --mount --hosts --exec --workdir --slots --memory \
        --link --system --rules --plan --platform --retries --keep-going --resume --reuse \
        --record --logs --dry-run --json"
      ;;
    'workflow')
      below="begin task end"
      flags="-h --help --json"
      ;;
    'workflow begin')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'workflow task')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'workflow end')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'identify')
      flags="-h --help --cluster --name --dir --mount --hosts --exec --path --hosts-max --budget \
        -o --output --json"
      ;;
    'forecast')
      flags="-h --help --platform -o --output --json"
      ;;
    'predict')
      flags="-h --help --platform --workload --operations --rules --plan --config --trace \
        --layouts --residence --metrics --power --frequency --repeats --bound --bound-system \
        --json"
      ;;
    'explore')
      flags="-h --help --platform --workload --space --vary --config --power --results --plot \
        --repeats --jobs --no-prune --json"
      ;;
    'advise')
      flags="-h --help --platform --workload --operations --record --config --vary -o --output \
        --least --repeats --jobs --json"
      ;;
    'plan')
      flags="-h --help --platform --workload --operations --record --config -o --output \
        --repeats --jobs --json"
      ;;
    'compare')
      flags="-h --help --workload --operations --plan --rules --config --draws --platform --run \
        --repeats -o --output --json"
      ;;
    'watch')
      flags="-h --help --workload --operations --plan --rules --config --draws --platform \
        --interval --for --once --manager --secret --name --dir --json"
      ;;
    'report')
      flags="-h --help --workload --operations --plan --rules --config --draws --platform \
        --envelope -o --output --json"
      ;;
    'top')
      flags="-h --help --workload --operations --plan --rules --config --draws --platform \
        --interval --once --manager --secret --name --dir --json"
      ;;
    'residence')
      flags="-h --help --since --top --manager --secret --name --dir --json"
      ;;
    'log')
      below="on off status"
      flags="-h --help --json"
      ;;
    'log on')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'log off')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'log status')
      flags="-h --help --manager --secret --name --dir --json"
      ;;
    'follow')
      flags="-h --help --trace --class --host --list --json"
      ;;
    'trace')
      below="start stop run wrap show workload"
      flags="-h --help --json"
      ;;
    'trace start')
      flags="-h --help --name --dir -o --output --light --cold --json"
      ;;
    'trace stop')
      flags="-h --help --name --dir --json"
      ;;
    'trace run')
      flags="-h --help --mount --name --dir -o --output --light --cold --json"
      ;;
    'trace wrap')
      flags="-h --help -o --output --json"
      ;;
    'trace show')
      flags="-h --help --json"
      ;;
    'trace workload')
      flags="-h --help --record -o --output --wfformat --json"
      ;;
    'bench')
      below="patterns gate"
      flags="-h --help --json"
      ;;
    'bench patterns')
      flags="-h --help --cluster --name --dir --mount --hosts --exec --slots --link --patterns \
        --sizes --scale --systems --replicas --repeats --width --stage-in --stage-out --seed \
        --workdir -o --output --map --json"
      ;;
    'bench gate')
      flags="-h --help --platform --config --draws --name --dir --patterns --file-size --repeats \
        --margin -o --output --json"
      ;;
    'envelope')
      below="run profile classify plot"
      flags="-h --help --json"
      ;;
    'envelope run')
      flags="-h --help --cluster --name --dir --mount --hosts --exec --clients --sizes --scale \
        --bytes-max --repeats --budget --pages --seed -o --output --json"
      ;;
    'envelope profile')
      flags="-h --help --workload --operations --stage --json"
      ;;
    'envelope classify')
      flags="-h --help --envelope --system --workload --operations --stage --clients --record \
        --trace --platform --config --json"
      ;;
    'envelope plot')
      flags="-h --help -o --output --json"
      ;;
    'capacity')
      below="run show predict plot"
      flags="-h --help --json"
      ;;
    'capacity run')
      flags="-h --help --cluster --name --dir --mount --hosts --exec --sizes --check --ratios \
        --mix --jobs --file-size --seconds --pages --writes --repeats --budget --seed -o \
        --output --json"
      ;;
    'capacity show')
      flags="-h --help --json"
      ;;
    'capacity predict')
      flags="-h --help --size --read --mix --resampled --json"
      ;;
    'capacity plot')
      flags="-h --help --json"
      ;;
  esac
}

# The values that may follow an option.
_mosa_values() {
  values=
  case $1 in
    'run --system') values='wass dss' ;;
    'trace workload --wfformat') values='1.5 1.6' ;;
    'envelope run --pages') values='cold warm' ;;
    'capacity run --pages') values='direct cached' ;;
    'capacity run --writes') values='stored taken' ;;
  esac
}

_mosa() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local below flags values at= word
  _mosa_of ''
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -- ]] && return # A program and its arguments.
    if [[ -n $word && " $below " == *" $word "* ]]; then
      at+=${at:+ }$word
      _mosa_of "$at"
    fi
  done
  _mosa_values "$at $previous"
  if [[ -z $values && $current == -* ]]; then
    values=$flags
  fi
  COMPREPLY=($(compgen -W "${values:-$below}" -- "$current"))
}

# Where nothing else is known: files.
complete -o bashdefault -o default -F _mosa mosa
