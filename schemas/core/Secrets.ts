import { Schema } from "effect"

/** What keys and secrets look like: a prefix that names the kind, then 40 base62 digits (238 bits). Shown once. */
const secretSchema = (prefix: string, noun: string) => {
  const pattern = new RegExp(`^${prefix}[0-9A-Za-z]{40}$`)
  return Schema.String.check(
    Schema.isPattern(pattern, { expected: `${noun} (${prefix} and 40 letters or digits)` })
  )
}

export const AccountSecret = secretSchema("sk_", "an account key")
export const RouterSecret = secretSchema("sk_mr_", "a router key")
export const SiteSecret = secretSchema("ssk_", "a site secret")

/** How many leading characters of a key or secret are kept readable, so that its owner can tell keys apart. */
export const secretPrefixLength = 12
