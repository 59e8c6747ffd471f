#!/usr/bin/env bash
# Writes the requirements files: exact versions with the hashes of every file of a release, and no
# address, so that whoever installs decides where the files come from. Versions stay where they
# still fit; with --upgrade the newest are taken (which reads every file, and takes many minutes).
set -euo pipefail
cd "$(dirname "$0")/.."
upgrade=("$@")
extras=(--extra agent-framework --extra openai --extra ollama --extra anthropic --extra mcp --extra grpc --extra ui
    --extra otel --extra evals --extra assess --extra gepa --extra gym --extra minigrid --extra minilm --extra mood --extra policy --extra postgres --extra seal)

tools=build/lock-venv
"${PYTHON:-python3.11}" -m venv --clear "$tools"
"$tools/bin/python" -m pip install --quiet "pip-tools>=7.5"
"$tools/bin/python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo "The requirements are resolved with Python 3.11; set PYTHON to one." >&2
    exit 1
}

# Settings of this machine (mirrors, folders of wheels) must not decide what gets locked.
export PIP_CONFIG_FILE=/dev/null
unset PIP_FIND_LINKS PIP_EXTRA_INDEX_URL PIP_INDEX_URL

resolve() { # resolve FILE HEADER ARGUMENTS...
    local file=$1 header=$2
    shift 2
    echo "Resolving $file..."
    "$tools/bin/pip-compile" --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
        --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
        "${upgrade[@]+"${upgrade[@]}"}" --output-file "$file" "$@"
    { printf '# %s\n# Resolved with Python 3.11 for Linux and macOS by `make lock`.\n' "$header"
      cat "$file"; } >build/lock.txt
    mv build/lock.txt "$file"
}

resolve requirements/run.txt "What running coag, its demo, its pages and its assessments needs." \
    --extra ui --extra evals pyproject.toml requirements/run.in
resolve requirements/dev.txt "What working on coag needs: run.txt, the extras, tests and checks." \
    "${extras[@]}" --constraint requirements/run.txt \
    pyproject.toml requirements/run.in requirements/dev.in

# The two ends of what pyproject.toml claims, for `make matrix`.
resolve requirements/newest.txt "The newest versions that the bounds of pyproject.toml allow." \
    "${extras[@]}" pyproject.toml requirements/run.in requirements/test.in
"$tools/bin/python" requirements/lower_bounds.py >build/lowest-bounds.txt
resolve requirements/lowest.txt "Every requirement of pyproject.toml at its lower bound." \
    "${extras[@]}" --constraint build/lowest-bounds.txt \
    pyproject.toml requirements/run.in requirements/test.in

resolve requirements/bench.txt "What the public benchmarks need: run.txt, the tests, the packages." \
    --extra ui --extra evals --extra openai \
    pyproject.toml requirements/run.in requirements/bench.in

# Packages that are installed without what they ask for: their own files, as they are named.
echo "Hashing requirements/bench-alone.txt..."
rm -rf build/alone && mkdir -p build/alone
"$tools/bin/python" -m pip download --quiet --no-deps --dest build/alone --requirement requirements/bench-alone.in
{ echo "# The benchmarks that are installed without what they ask for."
  echo "# Hashed by \`make lock\`."
  while read -r name; do
      wheel=("build/alone/$(tr '-' '_' <<<"${name%%==*}")-"*.whl)
      printf '%s \\\n    %s\n' "$name" "$("$tools/bin/python" -m pip hash "${wheel[0]}" | tail -n 1)"
  done < <(grep -v '^#' requirements/bench-alone.in); } >requirements/bench-alone.txt

resolve requirements/docs.txt "What making the documentation site needs." requirements/docs.in
resolve requirements/mutants.txt "What \`make mutants\` needs." requirements/mutants.in
resolve requirements/dist.txt "What \`make dist\` needs." requirements/dist.in
