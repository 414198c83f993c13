#!/bin/bash
# Speaks the part of the public OpenSearch image that this repository uses: variables with a dot in their name are
# settings, OPENSEARCH_JAVA_OPTS goes to Java. There is no security plugin to disable.
set -euo pipefail
home=/usr/share/opensearch
: "${OPENSEARCH_JAVA_OPTS:=-Xmx768m}"

mkdir -p $home/config
{
    echo 'network.host: 0.0.0.0'
    # A bound address other than loopback makes a node check what only the host can change (vm.max_map_count).
    echo 'node.store.allow_mmap: false'
    env | while IFS='=' read -r name value; do
        # What the runner itself sets may not be said twice.
        [[ $name =~ ^[a-z_]+(\.[a-z_]+)+$ && $name != discovery.type ]] && echo "$name: $value"
    done || true
} > $home/config/opensearch.yml
cp $home/log4j2.properties $home/config/

modules=org.opensearch.geo.GeoModulePlugin
for module in index.mapper.MapperExtras index.reindex.Reindex ingest.common.IngestCommon join.ParentJoin \
    painless.Painless percolator.Percolator script.expression.Expression transport.Netty4; do
    modules+=",org.opensearch.${module}ModulePlugin"
done
# Options of OPENSEARCH_JAVA_OPTS are words.
# shellcheck disable=SC2086
exec /opt/java/bin/java -XX:-UsePerfData --enable-native-access=ALL-UNNAMED $OPENSEARCH_JAVA_OPTS \
    -cp "$home/lib/*" org.codelibs.opensearch.runner.OpenSearchRunner \
    -basePath $home/run -confPath $home/config -dataPath $home/data -logsPath $home/logs \
    -clusterName "${cluster_name:-docker-cluster}" -numOfNode 1 -baseHttpPort 9199 \
    -moduleTypes "$modules" -printOnFailure
