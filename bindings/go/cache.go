package gcx

import (
	"sync"
	"sync/atomic"

	"example.org/gcx/bindings/go/generated/raw"
	"github.com/ebitengine/purego"
)

// Cache returns counters of the context cache since the driver was opened.
func Cache() (raw.CacheStats, error) { return filled(Raw.CacheGetStats) }

// SetCacheLimit sets how many green contexts without handle or stream each device caches.
func SetCacheLimit(contexts uint32) error {
	return check(func() Result { return Raw.CacheSetLimit(contexts) })
}

// TrimCache destroys the cached contexts beyond a number, the least recently used first.
func TrimCache(contexts uint32) (raw.CacheTrimmed, error) {
	return filled(func(trimmed *raw.CacheTrimmed) Result { return Raw.CacheTrim(contexts, trimmed) })
}

// PrepareParams are the options of PrepareContexts.
type PrepareParams struct {
	Flags  uint32 // 0 or raw.PrepareForLeases
	Cancel Cancel // cancels the rest
	// Progress is called after each resource, in a goroutine that is waited for; it may call gcx.
	// A panic of it continues in the caller of PrepareContexts and cancels the rest. With a
	// Cancel, which isn't signalled for that, the rest is prepared first, without Progress.
	Progress func(done, count uint32)
}

// PrepareContexts creates and caches the contexts of SM resources, one for each. Creating one takes
// milliseconds: call it before the work starts, or from a separate goroutine.
func PrepareContexts(params PrepareParams, resources ...Resource) error {
	c := sized(&raw.PrepareParams{Flags: params.Flags, Cancel: raw.Cancel(params.Cancel)})
	var reporter *progress
	if params.Progress != nil {
		reporter = &progress{report: params.Progress}
		if params.Cancel == 0 {
			cancel, err := NewCancel()
			if err != nil {
				return err
			}
			defer cancel.Close()
			reporter.cancel, c.Cancel = cancel, raw.Cancel(cancel)
		}
		c.UserData = atomic.AddUintptr(&lastProgress, 1)
		progresses.Store(c.UserData, reporter)
		defer progresses.Delete(c.UserData)
		c.Progress = progressCallback()
	}
	err := check(func() Result {
		return Raw.CachePrepare(first(resources).raw(), length(resources), c)
	})
	if reporter != nil && reporter.panicked {
		panic(reporter.value)
	}
	return err
}

// progress is one call that reports its progress.
type progress struct {
	report   func(done, count uint32)
	cancel   Cancel
	panicked bool
	value    interface{}
}

// call runs in C's callback, whose frames neither a panic nor runtime.Goexit may unwind.
func (reporter *progress) call(done, count uint32) {
	if reporter.panicked {
		return
	}
	ended := make(chan struct{})
	go func() {
		returned := false
		defer close(ended)
		defer func() {
			if !returned {
				reporter.panicked, reporter.value = true, recover()
			}
		}()
		reporter.report(done, count)
		returned = true
	}()
	<-ended
	if reporter.panicked && reporter.cancel != 0 {
		_ = reporter.cancel.Signal()
	}
}

// A callback is never freed, so that there is one, which finds its call by a number.
var (
	progressOnce    sync.Once
	progressAddress uintptr
	lastProgress    uintptr
	progresses      sync.Map // of each number the *progress
)

func progressCallback() uintptr {
	progressOnce.Do(func() {
		progressAddress = purego.NewCallback(func(done, count uint32, userData uintptr) {
			reporter, _ := progresses.Load(userData)
			reporter.(*progress).call(done, count)
		})
	})
	return progressAddress
}
