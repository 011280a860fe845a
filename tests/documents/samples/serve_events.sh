# SPDX-License-Identifier: Apache-2.0
# Starts a service in this folder that takes events of demand response, for commands that send some.
umask 077
echo secret-of-the-test >token
mkdir -p controller operator
cat >bridge.yaml <<END
controller: {socket: $PWD/controller/bridge.sock}
operator: {socket: $PWD/operator/operator.sock}
metrics: {address: null}
memory: {path: null}
planning: {power: {nodes: [{name: thin, idle: 70W, max: 250W}]}}
power: {events: {address: 127.0.0.1:9620, token_file: $PWD/token}}
END
schedbridge serve --config bridge.yaml >service.log 2>&1 &
echo $! >service.pid
for try in $(seq 300); do curl -s -o /dev/null http://127.0.0.1:9620/events && exit; sleep 0.2; done
cat service.log
exit 1
