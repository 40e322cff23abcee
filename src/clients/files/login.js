// The page by which a person lets a command line in. The token is behind # of its address, which no server sees.

const token = location.hash.slice(1)

const place = (id) => document.getElementById(id)
const sections = ["sign-in", "ask", "done", "declined", "nothing"]

/** Shows one section, and reads its heading out. */
const show = (id) => {
  for (const section of sections) place(section).hidden = section !== id
  place(id).querySelector("h2")?.focus()
}

const showNothing = (text) => {
  place("nothing-text").textContent = text
  show("nothing")
}

const ask = async (path, body, key) => {
  const response = await fetch(path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` })
    },
    body: JSON.stringify(body)
  })
  const answer = await response.json().catch(() => ({ error: `The server answered ${response.status}` }))
  return { status: response.status, answer }
}

/** Runs what a form does, once at a time, and says what is wrong. */
const onSubmit = (id, work) => {
  const form = place(id)
  const button = form.querySelector("button")
  const problem = form.querySelector("[role=alert]")
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    button.disabled = true
    problem.textContent = ""
    try {
      await work(problem)
    } catch {
      problem.textContent = "The server does not answer. Try again in a moment."
    } finally {
      button.disabled = false
    }
  })
}

const names = { desktop: "a desktop", mobile: "a phone or tablet", cli: "a command line", web: "a browser" }

/** Rights that the session can give, the least first. */
const showRights = (scopes) => {
  const isFull = scopes.includes("full")
  place("rights-choice").hidden = !isFull
  place("rights-own").hidden = isFull
  place("rights-own").textContent = `It gets the rights of your session: ${scopes.join(", ")}.`
}

const start = async () => {
  if (token === "")
    return showNothing("The address is incomplete. Open the whole one that the terminal shows.")
  const { answer, status } = await ask("/api/cli/auth/read", { token })
  if (status === 401) return show("sign-in")
  if (status === 404)
    return showNothing(
      "This login is over: it is good for ten minutes, and once. Begin again in the terminal."
    )
  if (status !== 200) return showNothing(answer.error)
  place("name").textContent = answer.name
  place("platform").textContent = names[answer.platform]
  place("digits").textContent = answer.digits
  showRights(answer.scopes)
  show("ask")
}

const begin = () =>
  start().catch(() => showNothing("The server does not answer. Load this page again in a moment."))

onSubmit("sign-in", async (problem) => {
  const field = place("key")
  const key = field.value.trim()
  const { answer, status } = /^[\x21-\x7e]+$/.test(key)
    ? await ask("/api/session", {}, key)
    : { status: 400, answer: { error: "A key has letters, digits and _ only." } }
  if (status !== 201) {
    problem.textContent =
      status === 401 ? "The server does not know this key. Check that all of it was pasted." : answer.error
    return
  }
  field.value = ""
  await start()
})

onSubmit("ask", async (problem) => {
  const rights = new FormData(place("ask")).get("rights")
  const scopes = place("rights-choice").hidden ? {} : { scopes: rights.split(" ") }
  const { answer, status } = await ask("/api/cli/auth/complete", { token, ...scopes })
  if (status === 200) {
    history.replaceState(null, "", location.pathname)
    return show("done")
  }
  if (status === 401) return show("sign-in")
  problem.textContent = answer.error
})

place("decline").addEventListener("click", () => {
  history.replaceState(null, "", location.pathname)
  show("declined")
})

// Another login's address was pasted into the same tab.
addEventListener("hashchange", () => location.reload())

void begin()
