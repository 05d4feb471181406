package main

import (
	"fmt"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

var ofResources = map[string]operation{
	"info": on(func(_ *world, resource gcx.Resource, _ []string) ([]string, error) {
		info, err := resource.Info()
		domain := "-"
		if info.Flags&raw.SMRequestLocalityDomainID != 0 {
			domain = fmt.Sprint(info.LocalityDomainID)
		}
		return answer(err, info.Device, word(uint32(info.Family), families), info.SMCount, info.AtomCount,
			info.MinPartitionSize, info.CoscheduledAlignment, info.Flags, domain)
	}),
	"queue": on(func(_ *world, resource gcx.Resource, _ []string) ([]string, error) {
		info, err := resource.Info()
		return answer(err, info.Device, word(uint32(info.WorkqueueScope), scopes),
			info.WorkqueueConcurrencyLimit)
	}),
	"split":    on(split),
	"union":    joined(gcx.Resource.Union),
	"subtract": joined(gcx.Resource.Subtract),
	"overlap": onTwo(func(_ *world, a, b gcx.Resource, _ []string) ([]string, error) {
		shared, err := a.Overlap(b)
		return answer(err, shared)
	}),
	"atom": on(func(world *world, resource gcx.Resource, in []string) ([]string, error) {
		atom, err := resource.Atom(uint32(parse(in[0])))
		return keepResource(world, in[1], atom, err)
	}),
	"sms": on(func(_ *world, resource gcx.Resource, _ []string) ([]string, error) {
		numbers, err := resource.SMIDs()
		return answer(err, counts(numbers))
	}),
	"cluster": on(func(_ *world, resource gcx.Resource, _ []string) ([]string, error) {
		blocks, err := resource.MaxClusterSize()
		return answer(err, blocks)
	}),
	"configure": on(func(world *world, config gcx.Resource, in []string) ([]string, error) {
		scope := raw.WorkqueueScope(number(in[0], scopes))
		configured, err := config.Configured(scope, uint32(parse(in[1])))
		return nil, world.keep(in[2], configured, err)
	}),
}

// split also plans: both must give the same result.
func split(world *world, resource gcx.Resource, in []string) ([]string, error) {
	flags, wanted := number(in[0], splitFlags), requests(in[1])
	planned, left, planError := resource.Plan(wanted, flags)
	groups, rest, splitError := resource.Split(wanted, flags)
	if planError != nil || splitError != nil {
		if !alike(planError, splitError) {
			return nil, fmt.Errorf("the plan answers %v, the split %v", planError, splitError)
		}
		return nil, splitError
	}
	var sms []uint32
	for i, group := range append(groups, rest) {
		info, err := group.Info()
		if err != nil {
			return nil, err
		}
		sms = append(sms, info.SMCount)
		name := fmt.Sprintf("%s.%d", in[2], i)
		if i == len(groups) {
			name = in[2] + ".rest"
		}
		world.objects[name] = group
	}
	given, over := counts(sms[:len(groups)]), sms[len(groups)]
	if counts(planned) != given || left != over {
		return nil, fmt.Errorf("the plan is %v and %d, the split %s and %d", planned, left, given, over)
	}
	return answer(nil, given, over)
}

// alike returns whether two errors have one result. Their messages begin with different functions.
func alike(plan, split error) bool {
	a, isA := plan.(*gcx.Error)
	b, isB := split.(*gcx.Error)
	return isA && isB && a.Result == b.Result
}
