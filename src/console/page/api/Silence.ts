const silence = new EventTarget()
const name = "silence"

/** A request had no answer: the readiness of the server is asked at once, before its next turn. */
export const reportSilence = (): void => {
  silence.dispatchEvent(new Event(name))
}

export const onSilence = (listener: () => void, signal: AbortSignal): void =>
  silence.addEventListener(name, listener, { signal })
