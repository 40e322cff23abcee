import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { localTime } from "#streams/time/LocalTime.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { faultOf, live, sent } from "../Stage.ts"
import { join, joined, openProject, settingsOf, subscriber, subscription } from "./SubscriberStage.ts"

const hourMillis = 3_600_000

/** `HH:MM` on the clocks of UTC, so many hours from now. */
const utc = (hours: number): string => new Date(Date.now() + hours * hourMillis).toISOString().slice(11, 16)

const clockOf = (zone: string, instant: string | null): string => {
  assert.isNotNull(instant)
  const { hour, minute, second } = localTime(zone, Date.parse(instant ?? ""))
  assert.strictEqual(second, 0)
  return [hour, minute].map((part) => String(part).padStart(2, "0")).join(":")
}

const fresh = {
  timezone: "Europe/Berlin",
  delivery: "instant",
  digestAt: "09:00",
  quietFrom: null,
  quietTo: null,
  highPasses: true,
  held: 0,
  nextDigestAt: null,
  quietUntil: null
}

layer(TestServer.shared, live)("delivery of a subscriber's messages", (it) => {
  it.effect("is at once for one who joins, and is what they set, each field by itself", () =>
    Effect.gen(function* () {
      const { request, token } = yield* subscriber
      assert.deepInclude(yield* settingsOf(token), fresh)
      let expected: object = fresh
      for (const change of [
        { digestAt: "18:45" },
        { highPasses: false },
        { quietFrom: utc(2), quietTo: utc(4), timezone: "UTC" },
        { quietTo: utc(5) },
        { quietFrom: null, quietTo: null },
        { digestAt: "00:00" },
        { digestAt: "23:59", delivery: "instant" },
        {}
      ]) {
        expected = { ...expected, ...change }
        assert.deepInclude((yield* request("PATCH", "", change)).json, expected, JSON.stringify(change))
        assert.deepInclude(yield* settingsOf(token), expected)
      }
    })
  )

  it.effect("refuses what is no setting, names its field, and changes nothing", () =>
    Effect.gen(function* () {
      const { request, token } = yield* subscriber
      const time = "expected a time as HH:MM, such as 18:00"
      const both = "both are null where there are no quiet hours"
      const cases: ReadonlyArray<readonly [object, string]> = [
        [{ delivery: "weekly" }, `delivery: expected "instant" | "hourly" | "daily"`],
        [{ delivery: "muted" }, `delivery: expected "instant" | "hourly" | "daily"`],
        [{ delivery: null }, `delivery: expected "instant" | "hourly" | "daily"`],
        [{ digestAt: "24:00" }, `digestAt: ${time}`],
        [{ digestAt: "9:00" }, `digestAt: ${time}`],
        [{ digestAt: "09:60" }, `digestAt: ${time}`],
        [{ digestAt: "09:00:00" }, `digestAt: ${time}`],
        [{ digestAt: "09:00\n" }, `digestAt: ${time}`],
        [{ digestAt: "٠٩:٠٠" }, `digestAt: ${time}`],
        [{ digestAt: null }, "digestAt: expected text"],
        [{ digestAt: 540 }, "digestAt: expected text"],
        [{ quietFrom: "10pm", quietTo: "07:00" }, `quietFrom: ${time}`],
        [{ quietFrom: "22:00", quietTo: "" }, `quietTo: ${time}`],
        [{ quietFrom: "22:00" }, `quietTo: is required with quietFrom; ${both}`],
        [{ quietTo: "07:00" }, `quietFrom: is required with quietTo; ${both}`],
        [{ quietFrom: "22:00", quietTo: null }, `quietTo: is required with quietFrom; ${both}`],
        [{ quietFrom: null, quietTo: "07:00" }, `quietFrom: is required with quietTo; ${both}`],
        [{ quietFrom: "22:00", quietTo: "22:00" }, `quietTo: is the same as quietFrom; ${both}`],
        [{ highPasses: "yes" }, "highPasses: expected boolean"],
        [{ highPasses: null }, "highPasses: expected boolean"],
        [{ nextDigestAt: null }, "nextDigestAt: is not known here"],
        [{ held: 0 }, "held: is not known here"]
      ]
      for (const [json, text] of cases) {
        const answer = yield* request("PATCH", "", { delivery: "daily", ...json })
        assert.deepStrictEqual(faultOf(answer), [400, text], JSON.stringify(json))
      }
      assert.deepInclude(yield* settingsOf(token), fresh)
      // One end alone is a change of quiet hours that are there, and no end of them.
      yield* request("PATCH", "", { quietFrom: "22:00", quietTo: "07:00" })
      for (const [json, text] of [
        [{ quietTo: null }, `quietTo: is required with quietFrom; ${both}`],
        [{ quietFrom: null }, `quietFrom: is required with quietTo; ${both}`],
        [{ quietTo: "22:00" }, `quietTo: is the same as quietFrom; ${both}`]
      ] as const)
        assert.deepStrictEqual(faultOf(yield* request("PATCH", "", json)), [400, text])
      assert.deepInclude(yield* settingsOf(token), { quietFrom: "22:00", quietTo: "07:00" })
    })
  )

  it.effect("says when the next digest comes, on the clocks of the zone", () =>
    Effect.gen(function* () {
      const { request, token } = yield* subscriber
      const nextOf = (json: object) =>
        Effect.map(
          request("PATCH", "", json),
          (answer) => (answer.json as { readonly nextDigestAt: string | null }).nextDigestAt
        )
      const before = Date.now()
      for (const timezone of ["Asia/Tokyo", "America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati"]) {
        const daily = yield* nextOf({ timezone, delivery: "daily", digestAt: "18:15" })
        assert.strictEqual(clockOf(timezone, daily), "18:15")
        assert.isAbove(Date.parse(daily ?? ""), before)
        assert.isAtMost(Date.parse(daily ?? ""), Date.now() + 25 * hourMillis)
        const hourly = yield* nextOf({ delivery: "hourly" })
        assert.match(clockOf(timezone, hourly), /:00$/)
        assert.isAtMost(Date.parse(hourly ?? ""), Date.now() + hourMillis)
        assert.isAbove(Date.parse(hourly ?? ""), before)
      }
      assert.isNull(yield* nextOf({ delivery: "instant" }))
      assert.isNull((yield* settingsOf(token)).nextDigestAt)
    })
  )

  it.effect("says until when it is quiet, which a digest waits for as well", () =>
    Effect.gen(function* () {
      const { request } = yield* subscriber
      const quiet = { timezone: "UTC", quietFrom: utc(-3), quietTo: utc(3) }
      const { json } = yield* request("PATCH", "", quiet)
      const { nextDigestAt, quietUntil } = json as Record<"nextDigestAt" | "quietUntil", string>
      assert.strictEqual(clockOf("UTC", quietUntil), quiet.quietTo)
      assert.isAbove(Date.parse(quietUntil), Date.now())
      assert.isAtMost(Date.parse(quietUntil), Date.now() + 3 * hourMillis)
      assert.strictEqual(nextDigestAt, quietUntil)
      for (const delivery of ["hourly", "daily"])
        assert.deepInclude((yield* request("PATCH", "", { delivery, digestAt: utc(1) })).json, {
          nextDigestAt: quietUntil,
          quietUntil
        })
      // They are over, or begin later.
      for (const [from, to] of [
        [-5, -2],
        [2, 5]
      ] as const)
        assert.deepInclude(
          (yield* request("PATCH", "", { delivery: "instant", quietFrom: utc(from), quietTo: utc(to) })).json,
          { nextDigestAt: null, quietUntil: null }
        )
    })
  )

  it.effect("is chosen for each project, and the next digest is that of the first of them", () =>
    Effect.gen(function* () {
      const { channel, id, request, stage, token } = yield* subscriber
      const second = yield* openProject(stage, { name: "Second" })
      yield* joined(second.link, {}, token)
      const digestAt = utc(5)
      yield* request("PATCH", "", { timezone: "UTC", digestAt })
      const choose = (project: string, delivery: string) =>
        Effect.map(request("PUT", `/projects/${project}`, { delivery }), ({ json }) =>
          assert.deepInclude(json, { id: project, delivery })
        )
      const next = Effect.map(settingsOf(token), ({ nextDigestAt }) => nextDigestAt)
      yield* choose(id, "daily")
      assert.strictEqual(clockOf("UTC", yield* next), digestAt)
      yield* choose(second.id, "hourly")
      assert.match(clockOf("UTC", yield* next), /:00$/)
      yield* choose(second.id, "muted")
      assert.strictEqual(clockOf("UTC", yield* next), digestAt)
      yield* choose(id, "instant")
      assert.isNull(yield* next)
      yield* request("PATCH", "", { delivery: "daily" })
      assert.isNull(yield* next)
      yield* choose(second.id, "inherit")
      assert.strictEqual(clockOf("UTC", yield* next), digestAt)
      const { channels, projects } = yield* settingsOf(token)
      assert.sameDeepMembers(
        projects.map((project) => [project.id, project.delivery]),
        [
          [id, "instant"],
          [second.id, "inherit"]
        ]
      )
      assert.strictEqual(channels[0]?.id, channel)
      for (const delivery of ["weekly", "", null])
        assert.strictEqual((yield* request("PUT", `/projects/${id}`, { delivery })).status, 400)
    })
  )

  it.effect("follows each change with what is held, whose number and instant are told", () =>
    Effect.gen(function* () {
      const { id, key, request, stage, token } = yield* subscriber
      const second = yield* openProject(stage, { name: "Second" })
      yield* joined(second.link, {}, token)
      // Hours away in each of these zones, so that nothing is due meanwhile.
      const [digestAt, later] = [utc(6), utc(8)]
      yield* request("PATCH", "", { timezone: "UTC", delivery: "daily", digestAt })
      for (const project of [id, second.id, second.id])
        assert.strictEqual((yield* sent(key, { project })).messages[0]?.queuedForDigest, 1)
      const isHeld = (count: number, zone: string, at: string) =>
        Effect.map(settingsOf(token), ({ held, nextDigestAt }) => {
          assert.strictEqual(held, count)
          assert.strictEqual(clockOf(zone, nextDigestAt), at)
        })
      yield* isHeld(3, "UTC", digestAt)
      for (const timezone of ["Europe/London", "Africa/Abidjan", "Atlantic/Azores"]) {
        yield* request("PATCH", "", { timezone })
        yield* isHeld(3, timezone, digestAt)
      }
      yield* request("PATCH", "", { timezone: "UTC", digestAt: later })
      yield* isHeld(3, "UTC", later)
      const quietTo = utc(10)
      yield* request("PATCH", "", { quietFrom: utc(7), quietTo })
      yield* isHeld(3, "UTC", quietTo)
      yield* request("PATCH", "", { quietFrom: null, quietTo: null })
      yield* isHeld(3, "UTC", later)
      yield* request("PUT", `/projects/${second.id}`, { delivery: "daily" })
      yield* isHeld(3, "UTC", later)
      yield* request("PUT", `/projects/${second.id}`, { delivery: "muted" })
      yield* isHeld(1, "UTC", later)
      yield* request("DELETE", `/projects/${id}`)
      assert.strictEqual((yield* settingsOf(token)).held, 0)
    })
  )

  it.effect("can be set while joining, by one who is new; those of another stay", () =>
    Effect.gen(function* () {
      const { link, request, stage, token } = yield* subscriber
      const set = {
        timezone: "Asia/Tokyo",
        delivery: "daily",
        digestAt: "18:00",
        quietFrom: "22:00",
        quietTo: "07:00",
        highPasses: false
      }
      const one = yield* joined(link, { push: subscription(), ...set })
      assert.deepInclude(yield* settingsOf(one.token), set)
      yield* request("PATCH", "", { delivery: "hourly" })
      const second = yield* openProject(stage)
      yield* joined(second.link, set, token)
      assert.deepInclude(yield* settingsOf(token), {
        ...fresh,
        delivery: "hourly",
        nextDigestAt: (yield* settingsOf(token)).nextDigestAt
      })
      for (const [json, text] of [
        [{ delivery: "never" }, `delivery: expected "instant" | "hourly" | "daily"`],
        [
          { quietFrom: "22:00" },
          "quietTo: is required with quietFrom; both are null where there are no quiet hours"
        ],
        [{ digestAt: "6 pm" }, "digestAt: expected a time as HH:MM, such as 18:00"]
      ] as const)
        assert.deepStrictEqual(faultOf(yield* join(link, { push: subscription(), ...json })), [400, text])
    })
  )

  it.effect("of two changes at once has both, or names the one that does not fit", () =>
    Effect.gen(function* () {
      const { request, token } = yield* subscriber
      for (let round = 0; round < 5; round++) {
        yield* request("PATCH", "", {
          delivery: "instant",
          quietFrom: "22:00",
          quietTo: "07:00",
          digestAt: "09:00"
        })
        const answers = yield* Effect.all(
          [
            request("PATCH", "", { quietTo: "08:00" }),
            request("PATCH", "", { quietFrom: "08:00" }),
            request("PATCH", "", { digestAt: "10:00" }),
            request("PATCH", "", { name: `Ada ${round}` })
          ],
          { concurrency: 4 }
        )
        const refused = answers.filter(({ status }) => status !== 200)
        assert.deepStrictEqual(
          refused.map(({ status }) => status),
          [400]
        )
        const settings = yield* settingsOf(token)
        assert.notStrictEqual(settings.quietFrom, settings.quietTo)
        assert.deepInclude(settings, { name: `Ada ${round}`, digestAt: "10:00" })
      }
    })
  )
})
