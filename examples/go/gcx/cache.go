package gcx

import (
	"sync"

	"github.com/ebitengine/purego"
)

// CacheStats is what gcx keeps, since the driver was opened.
type CacheStats struct {
	structSize                  uint32
	Limit, InUse, Kept          uint32
	Hits, Misses, Evicted, Lost uint64
	Prepared                    uint64 // made ahead of time, of those made
	MakingNS, LongestMakingNS   uint64 // in the driver making them: all together, and the longest
	KeptStreams                 uint32
	reserved                    uint32
}

// Cache tells what gcx keeps.
func Cache() (CacheStats, error) {
	var stats CacheStats
	stats.structSize = sizeOf(&stats)
	err := check(func() Result { return c.CacheGetStats(&stats) })
	return stats, err
}

// SetCacheLimit bounds how many green contexts without handle or stream are kept on each device.
func SetCacheLimit(contexts uint32) error {
	return check(func() Result { return c.CacheSetLimit(contexts) })
}

// CacheTrimmed is what a trim came to.
type CacheTrimmed struct {
	structSize                uint32
	Contexts, Streams         uint32 // destroyed
	ContextsLeft, StreamsLeft uint32 // that capture, or are at work
	reserved                  uint32
	Bytes                     uint64 // device memory that is free now
}

// TrimCache destroys the kept contexts beyond a number now, the longest unused first.
func TrimCache(contexts uint32) (CacheTrimmed, error) {
	var trimmed CacheTrimmed
	trimmed.structSize = sizeOf(&trimmed)
	err := check(func() Result { return c.CacheTrim(contexts, &trimmed) })
	return trimmed, err
}

// PrepareForLeases makes contexts as leases have them.
const PrepareForLeases uint32 = 0x1

// PrepareParams is how to make contexts ahead of time.
type PrepareParams struct {
	Flags  uint32
	Cancel Cancel // gives the rest up
	// Progress is told after each resource, in a goroutine of its own that is waited for; it may
	// call gcx. If it panics, PrepareContexts does, and the rest is given up; a Cancel that was
	// given isn't signalled for that: with one the rest is made first, without Progress.
	Progress func(done, count uint32)
}

type prepareParams struct {
	structSize uint32
	flags      uint32
	cancel     uintptr
	progress   uintptr
	userData   uintptr
}

// PrepareContexts makes and keeps the contexts of SM resources, one for each. It takes milliseconds
// for each that isn't there yet: call it before the work starts, or from a goroutine of its own.
func PrepareContexts(params PrepareParams, resources ...Resource) error {
	raw := prepareParams{flags: params.Flags, cancel: params.Cancel.handle}
	raw.structSize = sizeOf(&raw)
	var told *progress
	if params.Progress != nil {
		told = &progress{tell: params.Progress}
		if params.Cancel == (Cancel{}) {
			own, err := NewCancel()
			if err != nil {
				return err
			}
			defer own.Close()
			told.own, raw.cancel = own, own.handle
		}
		raw.userData = progresses.add(told)
		defer progresses.remove(raw.userData)
		raw.progress = progressCallback()
	}
	err := check(func() Result {
		return c.CachePrepare(first(resources), uint32(len(resources)), &raw)
	})
	if told != nil && told.panicked {
		panic(told.value)
	}
	return err
}

// progress is one call that tells how far it is.
type progress struct {
	tell     func(done, count uint32)
	own      Cancel
	panicked bool
	value    interface{}
}

// call runs in C's callback, whose frames neither a panic nor runtime.Goexit may unwind.
func (told *progress) call(done, count uint32) {
	if told.panicked {
		return
	}
	ended := make(chan struct{})
	go func() {
		returned := false
		defer close(ended)
		defer func() {
			if !returned {
				told.panicked, told.value = true, recover()
			}
		}()
		told.tell(done, count)
		returned = true
	}()
	<-ended
	if told.panicked && told.own != (Cancel{}) {
		_ = told.own.Signal()
	}
}

// A callback is never freed, so there is one, which finds the call that it is for by a number.
var (
	progressOnce    sync.Once
	progressAddress uintptr
	progresses      = registry{calls: map[uintptr]*progress{}}
)

func progressCallback() uintptr {
	progressOnce.Do(func() {
		progressAddress = purego.NewCallback(func(done, count uint32, userData uintptr) {
			progresses.get(userData).call(done, count)
		})
	})
	return progressAddress
}

type registry struct {
	sync.Mutex
	last  uintptr
	calls map[uintptr]*progress
}

func (of *registry) add(told *progress) uintptr {
	of.Lock()
	defer of.Unlock()
	of.last++
	of.calls[of.last] = told
	return of.last
}

func (of *registry) get(number uintptr) *progress {
	of.Lock()
	defer of.Unlock()
	return of.calls[number]
}

func (of *registry) remove(number uintptr) {
	of.Lock()
	defer of.Unlock()
	delete(of.calls, number)
}
