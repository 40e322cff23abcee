/**
 * Loaded into the peer (`node --import`). @portkey-ai/gateway 1.15.2 sets headers on the response that `fetch` gave it,
 * which every Node since 20 refuses for a stream ("TypeError: immutable"): the client gets a 500. Here the same response
 * comes with headers that can be set.
 */
const original = globalThis.fetch

globalThis.fetch = async (...asked) => {
  const response = await original(...asked)
  return new Response(response.body, {
    status: response.status,
    statusText: response.statusText,
    headers: new Headers(response.headers)
  })
}
