#!/bin/sh
# Certificates for mutual TLS between the controller and its adapters. Prints them as Secrets of type kubernetes.io/tls:
#
#     deploy/certificates.sh FOLDER dhp-controller dhp-adapter-livekit ... | kubectl apply -f -
#
# FOLDER keeps the authority, made the first time, and must be kept from others: who holds ca.key can delete instances.
# It is for these connections alone, since both ends take every certificate that it signed for the part they see.
# Each run issues new certificates for DHP_CERTIFICATE_DAYS (365) days; nothing has to be restarted for them.
set -eu
umask 077

if [ "$#" -lt 2 ]; then
  echo "usage: $0 FOLDER NAME...    (NAME: dhp-controller, or the Service of an adapter)" >&2
  exit 2
fi
folder=$1
shift
days=${DHP_CERTIFICATE_DAYS:-365}
new_key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

# openssl tells of its progress on standard error, where only failures belong.
openssl_quietly() {
  if ! said=$(openssl "$@" 2>&1); then
    echo "openssl $1 failed: $said" >&2
    exit 1
  fi
}

mkdir -p "$folder"
if [ ! -e "$folder/ca.key" ]; then
  # shellcheck disable=SC2086
  openssl_quietly req -x509 $new_key -days 3650 -subj "/CN=dhp adapters" \
    -addext keyUsage=critical,keyCertSign -keyout "$folder/ca.key" -out "$folder/ca.crt"
fi

issue() {
  case $1 in
    dhp-controller) usage=clientAuth ;;
    *) usage=serverAuth ;;
  esac
  # shellcheck disable=SC2086
  openssl_quietly req $new_key -subj "/CN=$1" \
    -addext "subjectAltName=DNS:$1.dhp-system.svc,DNS:$1.dhp-system.svc.cluster.local" \
    -addext "extendedKeyUsage=$usage" -addext keyUsage=critical,digitalSignature \
    -keyout "$folder/$1.key" -out "$folder/$1.csr"
  openssl_quietly x509 -req -in "$folder/$1.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -CAcreateserial \
    -days "$days" -copy_extensions copy -out "$folder/$1.crt"
}

in_base64() {
  openssl base64 -A -in "$1"
}

for name in "$@"; do
  issue "$name"
  cat <<SECRET
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata:
  name: $name-tls
  namespace: dhp-system
  labels: {app.kubernetes.io/part-of: dhp}
data:
  tls.crt: $(in_base64 "$folder/$name.crt")
  tls.key: $(in_base64 "$folder/$name.key")
  ca.crt: $(in_base64 "$folder/ca.crt")
SECRET
done
