import { byId, element, Refused } from "./browser.js"

// When messages come: the settings in words, and the form in which each is changed at once.

const dayMillis = 86_400_000

/** Dates of a zone. A browser may know fewer zones than the server: then its own. */
const formatOf = (timeZone, options) => {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone, ...options })
  } catch {
    return new Intl.DateTimeFormat("en-GB", options)
  }
}

const clock = (millis, zone) =>
  formatOf(zone, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(millis)

/** `today at 18:00`, on the clocks of the zone. */
const dayAndClock = (millis, zone, nowMillis) => {
  const day = formatOf(zone, { year: "numeric", month: "numeric", day: "numeric" })
  const dayNumber = (at) => {
    const [date, month, year] = day.format(at).split("/").map(Number)
    return Date.UTC(year, month - 1, date) / dayMillis
  }
  const days = dayNumber(millis) - dayNumber(nowMillis)
  const date = formatOf(zone, { weekday: "long", day: "numeric", month: "long" })
  const name = ["today", "tomorrow"][days] ?? `on ${date.format(millis)}`
  return `${name} at ${clock(millis, zone)}`
}

const digests = ["hourly", "daily"]

/** The meaning of settings, as the server tells them, at an instant. */
export const wordsOf = (settings, nowMillis, ownZone) => {
  const { delivery, held, nextDigestAt, projects, quietFrom, quietTo, quietUntil, timezone } = settings
  const place = timezone === ownZone ? "" : ` (${timezone})`
  const waiting = (rest) =>
    held === 0 ? "" : held === 1 ? ` One message ${rest[0]}.` : ` ${held} messages ${rest[1]}.`
  const hasDigests =
    digests.includes(delivery) || projects.some((project) => digests.includes(project.delivery))
  const quiet =
    quietUntil !== null
      ? `Quiet until ${clock(Date.parse(quietUntil), timezone)}${place}.`
      : quietFrom === null
        ? ""
        : `Quiet from ${quietFrom} to ${quietTo}${place}.`
  if (nextDigestAt === null) return `Messages come at once. ${quiet}`.trim()
  const next = Date.parse(nextDigestAt)
  if (!hasDigests && nextDigestAt === quietUntil)
    return `${quiet} What comes meanwhile, comes then.${waiting(["waits", "wait"])}`
  const digest =
    next <= nowMillis
      ? "The next digest is on its way."
      : `The next digest comes ${dayAndClock(next, timezone, nowMillis)}${place}.`
  const others =
    delivery === "instant" && quietUntil === null
      ? "Messages come at once, where their project has no digests."
      : ""
  return [others, `${digest}${waiting(["waits for it", "wait for it"])}`, quiet].filter(Boolean).join(" ")
}

const fields = ["delivery", "digestAt", "quietFrom", "quietTo", "highPasses", "timezone"]
const quietDefault = { quietFrom: "22:00", quietTo: "07:00" }

/** After the last key of a time: a keyboard changes it in several steps. */
const typingMillis = 700

const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC"

const problemAt = (field, text) => {
  byId(`${field}-problem`).textContent = text
  byId(field).setAttribute("aria-invalid", String(text !== ""))
}

/** `quietTo: is wrong` is told at that field, and without its name. */
const tell = (error, asked) => {
  const [, field, words] = /^(\w+): (.*)$/s.exec(error.message) ?? []
  const at = error instanceof Refused && fields.includes(field) ? field : asked
  const text = at === field ? words : error.message
  problemAt(at, `${text[0].toUpperCase()}${text.slice(1)}.`.replace(/\.\.$/, "."))
}

let shown

const showChoices = ({ delivery, highPasses, quietFrom }) => {
  byId("delivery").value = delivery
  byId("highPasses").checked = highPasses
  byId("quiet").checked = quietFrom !== null
  byId("quiet-times").hidden = quietFrom === null
}

/** Shows saved settings; a field that is being typed in stays. */
export const showTimes = (settings) => {
  shown = settings
  const { delivery, digestAt, projects, quietFrom, quietTo, timezone } = settings
  showChoices(settings)
  byId("digest-at").hidden = delivery !== "daily" && projects.every((project) => project.delivery !== "daily")
  for (const [field, value] of Object.entries({ digestAt, quietFrom, quietTo, timezone }))
    if (document.activeElement !== byId(field)) byId(field).value = value ?? ""
  byId("own-zone").hidden = timezone === ownZone
  showWords()
}

const showWords = () => {
  byId("meaning").textContent = wordsOf(shown, Date.now(), ownZone)
}

/** Changes are saved one after the other, in the order in which they were made. */
let saving = Promise.resolve()

/** `save` writes a change, shows what the server has made of it, and confirms it. */
export const watchTimes = (save) => {
  const saved = async (before, field, json) => {
    await before
    for (const name of fields) problemAt(name, "")
    try {
      await save(json)
    } catch (error) {
      // Typed text stays, to be mended.
      showChoices(shown)
      tell(error, field)
    }
  }
  const change = (field, json) => {
    saving = saved(saving, field, json)
  }

  /** A time, or the pair of them, once its typing is over. */
  const watchTime = (field, jsonOf) => {
    const input = byId(field)
    let timer
    const done = () => {
      clearTimeout(timer)
      if (input.value === (shown[field] ?? "")) return problemAt(field, "")
      if (input.value === "") return problemAt(field, "A time is missing.")
      change(field, jsonOf())
    }
    input.addEventListener("input", () => {
      clearTimeout(timer)
      timer = setTimeout(done, typingMillis)
    })
    input.addEventListener("blur", done)
  }

  byId("delivery").addEventListener("change", ({ target }) => change("delivery", { delivery: target.value }))
  byId("highPasses").addEventListener("change", ({ target }) =>
    change("highPasses", { highPasses: target.checked })
  )
  byId("quiet").addEventListener("change", ({ target }) =>
    change("quietFrom", target.checked ? quietDefault : { quietFrom: null, quietTo: null })
  )
  watchTime("digestAt", () => ({ digestAt: byId("digestAt").value }))
  for (const field of ["quietFrom", "quietTo"])
    watchTime(field, () => ({ quietFrom: byId("quietFrom").value, quietTo: byId("quietTo").value }))
  byId("timezone").addEventListener("change", ({ target }) => {
    const timezone = target.value.trim()
    if (timezone === "") problemAt("timezone", "A time zone is missing.")
    else change("timezone", { timezone })
  })
  byId("own-zone").append(
    `This browser’s zone is ${ownZone}. `,
    element(
      "button",
      { type: "button", className: "plain", onclick: () => change("timezone", { timezone: ownZone }) },
      "Use it"
    )
  )
  const zones = [ownZone, "UTC", ...Intl.supportedValuesOf("timeZone")]
  byId("zones").append(...[...new Set(zones)].map((value) => element("option", { value })))
  byId("when").addEventListener("submit", (event) => event.preventDefault())
}
