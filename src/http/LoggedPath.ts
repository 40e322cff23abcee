/** Secrets in paths, such as the tokens of links, are 40 letters and digits, or percent-encoded ones; ids have 22, with a prefix. */
const secret = /[0-9A-Za-z%]{40,}/g

/** Tokens of share links are as long as ids. A query behind them may have a password. */
const shareLink = /(\/direct\/|\/api\/share-links\/)[^/]*/

/** A path, or a URL, as logs and traces may have it: without its query. */
export const loggedPath = (path: string): string =>
  path.replace(/\?.*$/s, "").replace(shareLink, "$1…").replace(secret, "…")
