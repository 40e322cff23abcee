/** Runs once the delay is over and the tab is seen: a hidden tab asks for nothing. An abort calls it off. */
export const whenVisible = (delayMillis: number, run: () => void, signal: AbortSignal): void => {
  const timer = setTimeout(() => {
    if (!document.hidden) return run()
    const seen = new AbortController()
    signal.addEventListener("abort", () => seen.abort(), { signal: seen.signal })
    const onChange = (): void => {
      if (document.hidden) return
      seen.abort()
      run()
    }
    document.addEventListener("visibilitychange", onChange, { signal: seen.signal })
  }, delayMillis)
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true })
}
