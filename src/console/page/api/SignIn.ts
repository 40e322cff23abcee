import type { SessionToken, SignedIn } from "#schemas/accounts/SessionApi.ts"
import { type Ask, keyBearer, makeAsk } from "./Ask.ts"
import { Refused } from "./Refused.ts"
import { renewedToken } from "./RenewedToken.ts"

/** A session of the server. Its cookie is in the browser, where no script can read it. */
export type OpenSession = typeof SignedIn.Encoded
export type User = OpenSession["user"]

const path = "/api/session"

/** Asks with the cookie of the session. It opens the session itself here; all else is asked with a token. */
const door = makeAsk(undefined, "same-origin")

/** Fails with 401 where there is none. */
export const presentSession = (): Promise<OpenSession> => door(path)

/** The key is in the one request, and is not kept. */
export const signInByKey = (key: string): Promise<OpenSession> =>
  makeAsk(keyBearer(key), "same-origin")(path, { method: "POST" })

export const signInByLink = (ticket: string): Promise<OpenSession> =>
  door(path, { method: "POST", json: { ticket } })

/** Ends the session of this browser. */
export const signOut = async (): Promise<void> => {
  try {
    await door(path, { method: "DELETE" })
  } catch (error) {
    // It has ended by itself.
    if (!(error instanceof Refused) || error.status !== 401) throw error
  }
}

/** Ends every session of the user. */
export const signOutEverywhere = (): Promise<unknown> => door(`${path}?everywhere=true`, { method: "DELETE" })

/** Asks with tokens of the user's session; fails with 401 once the browser has none, or another user's. */
export const askOf = ({ id }: User): Ask =>
  makeAsk(
    renewedToken(async () => {
      const response = await door.open(`${path}/token`, { method: "POST" })
      const { expiresAt, token }: typeof SessionToken.Encoded = await response.json()
      const { user } = await presentSession()
      if (user.id !== id) throw new Refused(401, "Another user signed in", undefined)
      // Both times are the server's: this machine's clock may be wrong.
      const sentAt = response.headers.get("date") ?? new Date().toUTCString()
      return { text: token, lifeMillis: Date.parse(expiresAt) - Date.parse(sentAt) }
    })
  )
