/** Takes the ticket of a login link, `/login#<ticket>`, out of the address bar and of the tab's history. */
export const takeTicket = (): string | undefined => {
  if (location.pathname !== "/login") return undefined
  const ticket = location.hash.slice(1)
  history.replaceState(null, "", "/")
  return ticket === "" ? undefined : ticket
}
