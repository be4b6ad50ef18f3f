package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// parameter is one of spec.parameters. The JSON Schema that GetProviderInfo shows and the check of a
// request are both made from this, so they cannot differ.
type parameter struct {
	description string
	pattern     string // of the whole value
	isImmutable bool
}

var parameters = map[string]parameter{
	"voice": {
		description: "Which voice it speaks with.",
		pattern:     `^(alto|bass|tenor)$`,
	},
	"speed": {
		description: "How fast it speaks, 0.5 to 2; 1.0 and 1 are the same.",
		pattern:     `^(0\.[5-9][0-9]?|1(\.[0-9]{1,2})?|2(\.0{1,2})?)$`,
	},
	"language": {
		description: "Which language it speaks; fixed once it is made.",
		pattern:     `^(de|en|zh)$`,
		isImmutable: true,
	},
}

var parameterPatterns = func() map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for name, one := range parameters {
		compiled[name] = regexp.MustCompile(one.pattern)
	}
	return compiled
}()

// parameterSchema is JSON Schema, draft 2020-12.
func parameterSchema() string {
	properties := map[string]any{}
	for name, one := range parameters {
		properties[name] = map[string]string{
			"type": "string", "pattern": one.pattern, "description": one.description,
		}
	}
	schema, err := json.Marshal(map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
	})
	if err != nil {
		panic(err) // texts are always JSON
	}
	return string(schema)
}

// checkParameters brings values to the one notation in which equal means equal. Refusals name rules
// and not values: a secret put into a parameter is not repeated.
func checkParameters(given map[string]string, wrong *mistakes) map[string]string {
	sound := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		pattern, isKnown := parameterPatterns[name]
		switch {
		case !isKnown:
			wrong.add("parameters."+name, "is no parameter of this adapter")
		case !pattern.MatchString(given[name]):
			wrong.add("parameters."+name, fmt.Sprintf("must match %s", pattern))
		default:
			sound[name] = normalised(name, given[name])
		}
	}
	return sound
}

func normalised(name, value string) string {
	if name != "speed" {
		return value
	}
	return speedText(speedOf(value))
}

// speedOf reads what the pattern has let through; 0 leaves it to the vendor.
func speedOf(value string) float64 {
	speed, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0
	}
	return speed
}

func speedText(speed float64) string {
	return strconv.FormatFloat(speed, 'f', -1, 64)
}
