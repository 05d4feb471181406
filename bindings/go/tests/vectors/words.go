package main

import (
	"fmt"
	"strconv"
	"strings"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

// The words for numbers in the files; a number without a word stands for itself.
var (
	types = map[string]uint32{
		"sm": uint32(gcx.SM), "workqueue-config": uint32(raw.ResourceWorkqueueConfig),
		"workqueue": uint32(raw.ResourceWorkqueue),
	}
	families = map[string]uint32{
		"none": uint32(raw.SMFamilyNone), "coscheduled": uint32(raw.SMFamilyCoscheduled), "fine": uint32(raw.SMFamilyFine),
		"max-cluster": uint32(raw.SMFamilyMaxCluster), "structured": uint32(raw.SMFamilyStructured),
		"external": uint32(raw.SMFamilyExternal),
	}
	smCounts = map[string]uint32{"rest": gcx.Rest}
	scopes   = map[string]uint32{
		"device_ctx":         uint32(raw.WorkqueueScopeDeviceCtx),
		"green_ctx_balanced": uint32(raw.WorkqueueScopeGreenCtxBalanced),
	}
	splitFlags = map[string]uint32{
		"-": 0, "fine": raw.SplitIgnoreSMCoscheduling, "max-cluster": raw.SplitMaxPotentialClusterSize,
		"exact": raw.SplitExact, "exclude_leased": raw.SplitExcludeLeased,
	}
	contextFlags = map[string]uint32{"-": 0, "private": raw.ContextPrivate}
	leaseFlags   = map[string]uint32{"-": 0, "shared": raw.LeaseShared}
	resizeFlags  = map[string]uint32{"-": 0, "deferred": raw.ResizeDeferred}
	eventFlags   = map[string]uint32{"-": 0, "timing": raw.EventTiming, "blocking": raw.EventBlockingSync}
)

// number parses words, separated by +, or a number.
func number(text string, words map[string]uint32) uint32 {
	var all uint32
	for _, word := range strings.Split(text, "+") {
		value, known := words[word]
		if !known {
			value = uint32(parse(word))
		}
		all |= value
	}
	return all
}

// parse parses a signed or unsigned number of 32 bits.
func parse(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < -1<<31 || value >= 1<<32 {
		wrong("%s is no number of 32 bits", text)
	}
	return value
}

// word returns the word for a number, or the number.
func word(value uint32, words map[string]uint32) string {
	for word, number := range words {
		if number == value {
			return word
		}
	}
	return fmt.Sprint(value)
}

func list(text string) []string {
	if text == "-" {
		return nil
	}
	return strings.Split(text, ",")
}

func listed(items []string) string {
	if len(items) == 0 {
		return "-"
	}
	return strings.Join(items, ",")
}

func counts(numbers []uint32) string {
	items := make([]string, len(numbers))
	for i, number := range numbers {
		items[i] = fmt.Sprint(number)
	}
	return listed(items)
}

func requests(text string) []raw.SMRequest {
	var all []raw.SMRequest
	for _, item := range list(text) {
		var values [5]uint32
		fields := strings.Split(item, "/")
		if len(fields) > len(values) {
			wrong("%s is no request", item)
		}
		for i, field := range fields {
			var words map[string]uint32
			if i == 0 {
				words = smCounts
			}
			values[i] = number(field, words)
		}
		all = append(all, raw.SMRequest{
			SMCount: values[0], CoscheduledSMCount: values[1],
			PreferredCoscheduledSMCount: values[2], Flags: values[3], LocalityDomainID: values[4],
		})
	}
	return all
}
