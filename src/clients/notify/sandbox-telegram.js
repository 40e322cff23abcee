// Runs in the pages of the sandbox's Telegram: somebody presses start, or writes to the bot.
const post = async (path, json) => {
  const answer = await fetch(path, { method: "POST", body: JSON.stringify(json) })
  if (!answer.ok) throw new Error((await answer.json()).error)
}

const problem = () => document.querySelector("#problem")

const done = async (asked, then) => {
  problem().textContent = ""
  try {
    await asked
    then()
  } catch (error) {
    problem().textContent = error.message
  }
}

document.addEventListener("submit", (event) => {
  event.preventDefault()
  const { target, submitter } = event
  const fields = Object.fromEntries(new FormData(target, submitter))
  if (target.dataset.chat !== undefined) {
    const { text } = fields
    return void done(post(`/telegram/chats/${target.dataset.chat}/messages`, { text }), () =>
      location.reload()
    )
  }
  const { code, name, person, title } = fields
  const by = person === "" ? { name } : { person: Number(person) }
  const json = { code, ...by, ...(title === undefined ? {} : { groupTitle: title }) }
  done(post("/telegram/start", json), () => location.assign("/telegram"))
})
