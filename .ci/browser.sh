#!/usr/bin/env bash
# Runs the browser tests: `browser.sh [--if-possible]`. It needs a Chromium (COAG_CHROMIUM names
# one); as root on Debian it installs that. axe-core comes from the npm registry; without npm the
# tests of accessibility are skipped. With --if-possible a missing Chromium is said, no failure.
set -euo pipefail
cd "$(dirname "$0")/.."

AXE_VERSION=4.10.3
AXE_SHA256=880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb

found() {
    for name in "${COAG_CHROMIUM:-}" chromium chromium-browser google-chrome; do
        [ -n "$name" ] && command -v "$name" && return
    done
    return 1
}

install_chromium() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "Installing chromium from Debian's packages..."
    { timeout 240 apt-get install -y -qq --no-install-recommends chromium ||
        { timeout 120 apt-get update -qq &&
            timeout 240 apt-get install -y -qq --no-install-recommends chromium; }
    } >build/chromium.log 2>&1
}

mkdir -p build
if ! COAG_CHROMIUM=$(found); then
    install_chromium || true
    if ! COAG_CHROMIUM=$(found); then
        echo "BROWSER TESTS NOT RUN: there is no Chromium. Install one (Debian: apt-get install" \
            "chromium), or name it: COAG_CHROMIUM=/path/to/chromium make test-browser" >&2
        [ "${1:-}" = --if-possible ] && exit 0
        exit 1
    fi
fi
export COAG_CHROMIUM

axe=build/axe/node_modules/axe-core/axe.min.js
if [ ! -f "$axe" ] && command -v npm >/dev/null; then
    timeout 120 npm install --silent --prefix build/axe --no-save --no-package-lock --no-audit --no-fund \
        --ignore-scripts "axe-core@$AXE_VERSION" || true
fi
if [ -f "$axe" ]; then
    echo "$AXE_SHA256  $axe" | sha256sum --check --quiet ||
        { echo "axe-core $AXE_VERSION is not the file that it was." >&2; exit 1; }
    export COAG_AXE=$PWD/$axe
else
    echo "ACCESSIBILITY NOT CHECKED: axe-core could not be had from the npm registry." >&2
fi

exec .venv/bin/python -m pytest -m browser tests/browser -o timeout=120
