"""Makes objects PrometheusRule, for the Prometheus Operator, of the rules in conf/: as a manifest, and as a template of
the Helm chart, where the address of the runbooks may be given."""

import re

MANIFEST = "conf/kubernetes/monitoring/prometheus-rules.yaml"
TEMPLATE = "conf/helm/spoke/templates/prometheus-rules.yaml"
SOURCES = {"spoke-alerts": "conf/alerts.yaml", "spoke-recording-rules": "conf/recording-rules.yaml"}
NOTICE = "# Made by scripts/check.sh --fix metrics of conf/alerts.yaml and conf/recording-rules.yaml: change those."
HEAD = """apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {name}
  namespace: {namespace}
  labels:
    app.kubernetes.io/part-of: spoke
{labels}spec:
"""
LABELS = """    {{- with .Values.prometheusRule.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
"""


def groups_of(lines):
    """Returns the groups as they are written, two columns to the right."""
    return "".join(f"  {line}".rstrip() + "\n" for line in lines[lines.index("groups:"):])


def manifest(rules):
    """Returns the text of the manifest. `rules` is the lines of the files of SOURCES, by path."""
    objects = [HEAD.format(name=name, namespace="spoke-system", labels="") + groups_of(rules[path])
               for name, path in SOURCES.items()]
    return f"{NOTICE}\n" + "---\n".join(objects)


def template(rules):
    """Returns the text of the chart's template. What Prometheus fills in is no business of Helm."""
    objects = []
    for name, path in SOURCES.items():
        groups = groups_of(rules[path]).replace("{{", '{{ "{{" }}')
        groups = re.sub(r"runbook_url: docs/runbooks/", "runbook_url: {{ $runbooks }}/", groups)
        objects.append(HEAD.format(name=name, namespace="{{ .Release.Namespace }}", labels=LABELS) + groups)
    return ("{{- if .Values.prometheusRule.enabled }}\n"
            '{{- $runbooks := .Values.prometheusRule.runbooks | default "docs/runbooks" | trimSuffix "/" }}\n'
            f"{NOTICE}\n" + "---\n".join(objects) + "{{- end }}\n")
