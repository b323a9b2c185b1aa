#!/usr/bin/env bash
# Runs all tests on every supported MindSpore, each in an environment of its own that is removed afterwards.
#   tests/programs/versions.sh [PYTHON:MINDSPORE …]
set -euo pipefail
cd "$(dirname "$0")/../.."
pairs=${*:-"3.9:2.7.2 3.10:2.8.0 3.11:2.9.0 3.11:2.10.0 3.12:2.10.0"}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=""
for pair in $pairs; do
  version=${pair%%:*} mindspore=${pair##*:} python=""
  for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do  # pyenv's stand-ins may not run
    if "$candidate" -c "" 2>/dev/null; then python=$candidate && break; fi
  done
  if [ -z "$python" ]; then
    echo "Python $version, MindSpore $mindspore: there is no python$version on this machine"
    failed="$failed $pair"
    continue
  fi
  "$python" -m venv "$work/env"
  install="$work/env/bin/python -m pip install --quiet --disable-pip-version-check"
  $install --upgrade 'pip>=25.1'  # the first that reads [dependency-groups]
  $install "mindspore==$mindspore" -e . --group dev
  echo "Python $version, MindSpore $mindspore:"
  "$work/env/bin/python" -m pytest -q -n 2 --dist loadfile -p no:cacheprovider --ignore tests/conformance || failed="$failed $pair"
  rm -rf "$work/env"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
