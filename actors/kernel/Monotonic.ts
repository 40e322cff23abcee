import type * as Clock from "effect/Clock"

/** Milliseconds, with their fraction, on the clock's monotonic time: only differences mean something. About 50 ns. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
