/** Secrets in paths, such as the tokens of links, are 40 letters and digits, or percent-encoded ones; ids have 22, with a prefix. */
const secret = /[0-9A-Za-z%]{40,}/g

/** A path, or a URL, as logs and traces may have it. */
export const loggedPath = (path: string): string => path.replace(secret, "…")
