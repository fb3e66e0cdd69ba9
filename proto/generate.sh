#!/bin/sh
# Writes the Go code of the contracts beside the adapters that use it.
#
#   proto/generate.sh           generate
#   proto/generate.sh --check   fail if what is committed is not what the
#                               contracts generate
#
# The tools come from the Go module cache, at the versions below.
set -eu
buf=github.com/bufbuild/buf/cmd/buf@v1.75.0
plugins="google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1"

cd "$(dirname "$0")"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
for tool in $buf $plugins; do GOBIN=$tools/bin go install "$tool"; done
PATH=$tools/bin:$PATH

buf lint
if [ "${1-}" != --check ]; then
	buf generate
	exit
fi
buf generate --output "$tools/out"
# `out: ..` in buf.gen.yaml is beside the output folder.
stale=0
for file in $(cd "$tools" && find sequence migrate coupon -name '*.go'); do
	cmp -s "$tools/$file" "../$file" || { echo "$file is not what proto/ generates: run proto/generate.sh" >&2; stale=1; }
done
exit $stale
