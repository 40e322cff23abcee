import { readdirSync, readlinkSync } from "node:fs"

/** The open handles of this process, for finding leaks. */
export interface OpenThings {
  readonly sockets: number
  readonly timers: number
}

const isSocket = (descriptor: string): boolean => {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith("socket:")
  } catch {
    // Closed since it was listed, as the descriptor of the listing itself is.
    return false
  }
}

/** Linux: from /proc. */
export const openThings = (): OpenThings => ({
  sockets: readdirSync("/proc/self/fd").filter(isSocket).length,
  timers: process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length
})
