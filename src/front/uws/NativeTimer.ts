import type { UwsResponse } from "./Addon.ts"

/**
 * Sets uWebSockets.js's own timer of 10 s back; the limit is the front's. Never `resume` alone: it gives the socket the
 * poll events that the last paused one had, and where none was paused before, none, after which it hears nothing more.
 * Not for a socket that is paused.
 */
export const setTimerBack = (response: UwsResponse): void => {
  response.pause()
  response.resume()
}
