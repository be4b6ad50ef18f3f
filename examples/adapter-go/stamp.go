package main

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"
)

const (
	keyCharacters     = 16
	clusterCharacters = 8
)

var shortStampPattern = regexp.MustCompile(`^dhp-[a-z2-7]{16}-[a-z2-7]{8}$`)

// owner says whose an instance is: the cluster, and the uid of the Kubernetes object.
type owner struct{ cluster, uid string }

// stamp is the mark on an instance. The long fields are empty where somebody took them off at the
// vendor; short is never empty.
type stamp struct {
	keyShort string // "dhp-" and 16 base32 characters of SHA-256(key): finds the instance
	short    string // keyShort, "-" and 8 of SHA-256(cluster): tells the owner too
	key      string
	owner    owner
	specHash string
}

func makeStamp(key string, own owner, specHash string) stamp {
	keyShort := "dhp-" + base32Digest(key)[:keyCharacters]
	return stamp{
		keyShort: keyShort,
		short:    keyShort + "-" + clusterShort(own.cluster),
		key:      key,
		owner:    own,
		specHash: specHash,
	}
}

func clusterShort(cluster string) string {
	return base32Digest(cluster)[:clusterCharacters]
}

// base32Digest is SHA-256 in base32 of RFC 4648, lower case, without padding.
func base32Digest(text string) string {
	digest := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(digest[:]))
}

// hasKeyOf tells whether both are of one instance key.
func (s stamp) hasKeyOf(wanted stamp) bool {
	return s.keyShort == wanted.keyShort && (s.key == "" || s.key == wanted.key)
}

// isOwnedBy goes by the long form; the short one serves where there is none.
func (s stamp) isOwnedBy(cluster string) bool {
	if s.owner.cluster != "" {
		return s.owner.cluster == cluster
	}
	return s.short == s.keyShort+"-"+clusterShort(cluster)
}

// ownerText is what a refusal calls the owner.
func (s stamp) ownerText() string {
	if s.owner.cluster != "" {
		return s.owner.cluster
	}
	return s.short
}

// ownership is how an instance stands to the one who asks.
type ownership int

const (
	unowned     ownership = iota // carries no stamp
	ours                         // our cluster, key and uid
	predecessor                  // our cluster and key under the uid of an object that is gone
	foreign                      // another cluster's, or another key's
)

func ownershipOf(found *stamp, wanted stamp) ownership {
	switch {
	case found == nil:
		return unowned
	case !found.hasKeyOf(wanted) || !found.isOwnedBy(wanted.owner.cluster):
		return foreign
	case found.owner.uid == "" || found.owner.uid == wanted.owner.uid:
		return ours
	default:
		return predecessor
	}
}

// Labels at the vendor that hold the stamp.
const (
	labelShort   = "dhp-stamp"
	labelKeyHash = "dhp-key-hash"
	labelKey     = "dhp-key"
	labelCluster = "dhp-cluster"
	labelUID     = "dhp-uid"
	labelHash    = "dhp-spec-hash"
)

func (s stamp) labels() map[string]string {
	return map[string]string{
		labelShort:   s.short,
		labelKeyHash: s.keyShort,
		labelKey:     s.key,
		labelCluster: s.owner.cluster,
		labelUID:     s.owner.uid,
		labelHash:    s.specHash,
	}
}

// stampOf reads the labels back; nil where they hold no stamp of ours.
func stampOf(labels map[string]string) *stamp {
	short := labels[labelShort]
	if !shortStampPattern.MatchString(short) {
		return nil
	}
	return &stamp{
		keyShort: short[:len("dhp-")+keyCharacters],
		short:    short,
		key:      labels[labelKey],
		owner:    owner{cluster: labels[labelCluster], uid: labels[labelUID]},
		specHash: labels[labelHash],
	}
}
