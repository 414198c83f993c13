#!/bin/bash
# Speaks the part of the public Kafka image that this repository uses: every KAFKA_SOME_NAME becomes some.name of
# server.properties, CLUSTER_ID formats an empty folder, KAFKA_HEAP_OPTS goes to Java.
set -euo pipefail
properties=/opt/kafka/server.properties
: "${CLUSTER_ID:=5L6g3nShT-eMCtK--X86sw}" "${KAFKA_LOG_DIRS:=/var/lib/kafka/data}" "${KAFKA_HEAP_OPTS:=-Xmx512m}"
export KAFKA_LOG_DIRS

env | while IFS='=' read -r name value; do
    case $name in
        KAFKA_HEAP_OPTS) ;;
        KAFKA_*) name=${name#KAFKA_}; name=${name//_/.}; echo "${name,,}=$value" ;;
    esac
done > "$properties"

java=(/opt/java/bin/java -XX:-UsePerfData -Dorg.slf4j.simpleLogger.showDateTime=true -cp '/opt/kafka/libs/*')
"${java[@]}" kafka.tools.StorageTool format --ignore-formatted -t "$CLUSTER_ID" -c "$properties"
# Options of KAFKA_HEAP_OPTS are words.
# shellcheck disable=SC2086
exec "${java[@]}" $KAFKA_HEAP_OPTS kafka.Kafka "$properties"
