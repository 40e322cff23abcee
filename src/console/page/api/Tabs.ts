/** The other tabs of this browser have the same session. They are told of a change; nothing secret is told. */
const tabs = new BroadcastChannel("signalbox-session")

type Change = "signed in" | "signed out"

export const tellTabs = (change: Change): void => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of one origin
  tabs.postMessage(change)
}

export const onTold = (listener: (change: Change) => void, signal: AbortSignal): void =>
  tabs.addEventListener("message", ({ data }: MessageEvent<Change>) => listener(data), { signal })
