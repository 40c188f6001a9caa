{{- /* The configurations: the values' own, and with several servers what those need. */ -}}
{{- define "spoke.serverConfig" -}}
{{- $config := deepCopy .Values.ipamServer.config -}}
{{- if .Values.ha.enabled -}}
{{- $_ := set $config "store" (dict "etcd" .Values.ha.store) -}}
{{- $_ := set $config "seal_key_file" "/etc/spoke-seal/seal.key" -}}
{{- $_ := set (get $config "listen") "advertised" .Values.ha.advertised -}}
{{- $_ := set (get $config "listen") "operators" .Values.ha.operators -}}
{{- $_ := set (get $config "listen") "metrics_token_file" "/var/run/secrets/spoke-metrics/token" -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}
{{- define "spoke.agentConfig" -}}
{{- $config := deepCopy .Values.netagent.config -}}
{{- if .Values.ha.enabled -}}
{{- $config = set (omit $config "server") "servers" .Values.ha.agents.servers -}}
{{- $enroll := omit (get $config "enroll") "server" -}}
{{- $_ := set $config "enroll" (set $enroll "servers" .Values.ha.agents.enrollServers) -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}
