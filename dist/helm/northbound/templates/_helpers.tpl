{{/* The image of every container. */}}
{{- define "northbound.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "northbound.labels" -}}
app.kubernetes.io/name: northbound
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* How a program reaches the API server. The ClusterIP works only when the network does. */}}
{{- define "northbound.environment" -}}
{{- if .Values.kubernetes.host -}}
- {name: KUBERNETES_SERVICE_HOST, value: {{ .Values.kubernetes.host | quote }}}
- {name: KUBERNETES_SERVICE_PORT, value: {{ .Values.kubernetes.port | quote }}}
{{- else -}}
- {name: NORTHBOUND_K8S_SERVER_FROM, value: {{ .Values.kubernetes.kubeletConfig | quote }}}
{{- end }}
- {name: NORTHBOUND_LOG_LEVEL, value: {{ .Values.logLevel }}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- end }}

{{- define "northbound.kubeletMount" -}}
{{- if not .Values.kubernetes.host -}}
- {name: kubelet-config, mountPath: {{ .Values.kubernetes.kubeletConfig | quote }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "northbound.kubeletVolume" -}}
{{- if not .Values.kubernetes.host -}}
- name: kubelet-config
  hostPath: {path: {{ .Values.kubernetes.kubeletConfig | quote }}, type: File}
{{- end }}
{{- end }}

{{/* What all pods have in common: they bring up the network, so that they run before it works. */}}
{{- define "northbound.pod" -}}
hostNetwork: true
dnsPolicy: Default
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* For pods of the control plane that may move to another node: not to one that is being drained. */}}
{{- define "northbound.tolerations" -}}
{{- range list "node-role.kubernetes.io/control-plane" "node.kubernetes.io/not-ready"
  "node.kubernetes.io/network-unavailable" "node.cloudprovider.kubernetes.io/uninitialized" }}
- {key: {{ . }}, operator: Exists, effect: NoSchedule}
{{- end }}
- {key: northbound.io/agent-not-ready, operator: Exists}
{{- end }}

{{/* The nodes of the control plane, as JSON. Without a connection to the cluster, none. */}}
{{- define "northbound.controlPlaneNodes" -}}
{{- $found := list }}
{{- range (lookup "v1" "Node" "" "").items }}
{{- $labels := default dict .metadata.labels }}
{{- $fits := true }}
{{- range $key, $value := $.Values.controlPlane.nodeSelector }}
{{- if not (and (hasKey $labels $key) (eq (get $labels $key) $value)) }}{{ $fits = false }}{{ end }}
{{- end }}
{{- if $fits }}{{ $found = append $found .metadata.name }}{{ end }}
{{- end }}
{{- toJson $found }}
{{- end }}

{{/* The nodes with the databases, as JSON. None: the only one of the control plane. */}}
{{- define "northbound.databases" -}}
{{- $found := include "northbound.controlPlaneNodes" . | fromJsonArray }}
{{- $nodes := .Values.database.nodes }}
{{- if and (not $nodes) (eq (len $found) 1) }}{{ $nodes = $found }}{{ end }}
{{- toJson $nodes }}
{{- end }}

{{/* Where pods run that need the databases' node. */}}
{{- define "northbound.databaseNodes" -}}
{{- with include "northbound.databases" . | fromJsonArray -}}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      {{- range . }}
      - matchFields:
        - {key: metadata.name, operator: In, values: [{{ . | quote }}]}
      {{- end }}
{{- else -}}
nodeSelector: {{- toYaml .Values.controlPlane.nodeSelector | nindent 2 }}
{{- end }}
{{- end }}

{{/* The node's own server of a database, over TLS. Arguments: root, port. */}}
{{- define "northbound.localServer" -}}
{{- $listen := .root.Values.database.listen -}}
ssl:{{ has $listen (list "[::]" "0.0.0.0") | ternary "127.0.0.1" $listen }}:{{ .port }}
{{- end }}

{{/* The security context of containers that need no rights on the node. */}}
{{- define "northbound.unprivileged" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The containers that get certificates and renew them. Arguments: root, for, directory, once. */}}
{{- define "northbound.certificates" -}}
{{- include "northbound.image" .root }}
args:
- certificates
- --for={{ .for }}
- --directory={{ .directory }}
{{- if eq .for "node" }}
- --node-name=$(NODE_NAME)
{{- end }}
{{- if .once }}
- --once
{{- end }}
env:
{{- include "northbound.environment" .root | nindent 0 }}
{{- include "northbound.unprivileged" .root | nindent 0 }}
resources:
  requests: {cpu: 5m, memory: 30Mi}
volumeMounts:
- {name: certificates, mountPath: {{ .directory }}}
{{- include "northbound.kubeletMount" .root | nindent 0 }}
{{- end }}

{{/* Has a daemon started again that hangs. Arguments: program, which asks it; target, its name or control socket. A busy
     daemon may answer late. A container is ready once its startup probe has succeeded. It has a readiness probe only if
     that asks for something else: the runtime starts a process for each look, on every node. */}}
{{- define "northbound.hangs" -}}
startupProbe:
  exec:
    command: [{{ .program }}, --timeout=3, -t, {{ .target }}, version]
  timeoutSeconds: 5
  periodSeconds: 5
  failureThreshold: 720
livenessProbe:
  exec:
    command: [{{ .program }}, --timeout=25, -t, {{ .target }}, version]
  timeoutSeconds: 30
  periodSeconds: 30
  failureThreshold: 4
{{- end }}

{{/* How programs in the databases' pods find all servers of a database. Arguments: name, nodes. */}}
{{- define "northbound.servers" -}}
{{- if .nodes }}
{{- printf "unix:/run/ovn/peers/%s/%s" .name (join (printf ",unix:/run/ovn/peers/%s/" .name) .nodes) }}
{{- else }}
{{- printf "unix:/run/ovn/ovn%s_db.sock" .name }}
{{- end }}
{{- end }}

{{/* Annotations of what helm makes after `helm uninstall`, in the order of these weights, and removes when it is done. */}}
{{- define "northbound.afterUninstall" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* The type of volumes with Open vSwitch's directories: they must be there if the node has its own. */}}
{{- define "northbound.openvswitchDirectory" -}}
{{ default false (.Values.openvswitch).inPods | ternary "DirectoryOrCreate" "Directory" }}
{{- end }}

{{/* What an agent, and those who diagnose it, find in their environment: all flags of the doctor. */}}
{{- define "northbound.agentEnvironment" -}}
{{- include "northbound.environment" . }}
- {name: NORTHBOUND_NODE_NAME, value: $(NODE_NAME)}
- {name: NORTHBOUND_SYSTEM_ID, value: $(NODE_NAME)}
- {name: NORTHBOUND_DATAPATH_TYPE, value: {{ .Values.node.datapathType }}}
- {name: NORTHBOUND_CNI_BIN_DIR, value: {{ .Values.node.cniBinDirectory | quote }}}
- {name: NORTHBOUND_CNI_CONF_DIR, value: {{ .Values.node.cniConfDirectory | quote }}}
- {name: NORTHBOUND_SB_SERVICE, value: {{ .Release.Namespace }}/ovn-db}
- {name: NORTHBOUND_SB_PRIVKEY, value: /var/lib/northbound/certificates/ovn-sb-current.pem}
- {name: NORTHBOUND_SB_CERT, value: /var/lib/northbound/certificates/ovn-sb-current.pem}
- {name: NORTHBOUND_SB_CACERT, value: /var/lib/northbound/certificates/ovn-sb-ca.crt}
{{- end }}

{{/* What an agent, and those who diagnose it, see of the node. Arguments: root, writes. */}}
{{- define "northbound.agentMounts" -}}
{{- $readOnly := not .writes -}}
{{- /* ovs-appctl opens files with process IDs for writing. */}}
- {name: run-openvswitch, mountPath: /run/openvswitch}
- {name: run-ovn, mountPath: /run/ovn}
- {name: openvswitch, mountPath: /etc/openvswitch, readOnly: true}
- {name: certificates, mountPath: /var/lib/northbound/certificates, readOnly: true}
- {name: plugins, mountPath: {{ .root.Values.node.cniBinDirectory | quote }}, readOnly: true}
- {name: cni-conf, mountPath: {{ .root.Values.node.cniConfDirectory | quote }}, readOnly: {{ $readOnly }}}
- {name: cni-socket, mountPath: /run/ovn-kubernetes, readOnly: {{ $readOnly }}}
- {name: namespaces, mountPath: /run/netns, mountPropagation: HostToContainer, readOnly: {{ $readOnly }}}
{{ include "northbound.kubeletMount" .root }}
{{- end }}

{{/* The environment of a master, and of those who ask what a master would do. */}}
{{- define "northbound.masterEnvironment" -}}
{{- include "northbound.environment" . }}
- {name: NORTHBOUND_NB_SERVICE, value: {{ .Release.Namespace }}/ovn-db}
- {name: NORTHBOUND_NB_PRIVKEY, value: /certificates/ovn-nb-current.pem}
- {name: NORTHBOUND_NB_CERT, value: /certificates/ovn-nb-current.pem}
- {name: NORTHBOUND_NB_CACERT, value: /certificates/ovn-nb-ca.crt}
{{- end }}

{{/* The container that answers `kubectl northbound`. Arguments: root, for. */}}
{{- define "northbound.diagnostics" -}}
{{- include "northbound.image" .root }}
args:
- diagnostics
- --for={{ .for }}
- --node-name=$(NODE_NAME)
- --namespace={{ .root.Release.Namespace }}
resources:
  requests: {cpu: 5m, memory: 30Mi}
livenessProbe:
  httpGet: {host: 127.0.0.1, port: {{ get (dict "master" 9412 "node" 9413 "database" 9414) .for }}, path: /healthz}
  timeoutSeconds: 10
{{- end }}

{{/* The container that serves a daemon's metrics in the network, if that is wanted. Arguments: root, name, daemon, port. */}}
{{- define "northbound.metrics" -}}
{{- if (.root.Values.monitoring).enabled -}}
- name: metrics
  {{- include "northbound.image" .root | nindent 2 }}
  args: [metrics, "--daemon=127.0.0.1:{{ .daemon }}", "--listen=:{{ .port }}"]
  ports:
  - {name: metrics, containerPort: {{ .port }}}
  env:
  {{- include "northbound.environment" .root | nindent 2 }}
  livenessProbe:
    httpGet: {scheme: HTTPS, port: {{ .port }}, path: /healthz}
    timeoutSeconds: 10
  {{- include "northbound.unprivileged" .root | nindent 2 }}
  resources:
    requests: {cpu: 5m, memory: 30Mi}
  volumeMounts:
  {{- include "northbound.kubeletMount" .root | nindent 2 }}
{{- end }}
{{- end }}
