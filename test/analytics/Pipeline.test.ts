import { assert, describe, it } from "@effect/vitest"
import { isIPv6 } from "node:net"
import * as fc from "fast-check"
import { parseAgent, userAgentLengthMax } from "#streams/analytics/Agent.ts"
import { BoundedCache } from "#streams/analytics/BoundedCache.ts"
import { decodeBrowserEvent } from "#streams/analytics/BrowserDecoder.ts"
import { countryOfZone } from "#streams/analytics/Country.ts"
import { displayPath, escapedPath } from "#streams/analytics/DisplayForm.ts"
import { sentByBrowser } from "#streams/analytics/Draft.ts"
import { eventAgeMaxMillis } from "#streams/analytics/EventTime.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import { canonicalAddress } from "#streams/analytics/IpAddress.ts"
import { jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { parseJson } from "#streams/analytics/JsonText.ts"
import { bareHostname, isWithin, parsePageUrl, pathLengthMax } from "#streams/analytics/PageUrl.ts"
import { process, steps } from "#streams/analytics/Pipeline.ts"
import { chrome, fromBrowser, fromServer, googlebot, lookups, noon, stored } from "./Senders.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const faultOf = (body: Uint8Array): string => {
  const parsed = parseJson(body)
  return parsed instanceof FieldFault ? parsed.message : `parsed ${JSON.stringify(parsed).slice(0, 50)}`
}

describe("a JSON body", () => {
  it("is refused when it is cut off, empty, not UTF-8 or not JSON", () => {
    for (const text of ["", "{", '{"s":', '{"s":"x"', "nope", "{'s':1}", '{"s":"x"}}']) {
      assert.strictEqual(faultOf(bytes(text)), "body: expected JSON", text)
    }
    for (const raw of [[0xff], [0x22, 0xc3, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22]]) {
      assert.strictEqual(faultOf(new Uint8Array(raw)), "body: expected UTF-8")
    }
  })

  it("may be nested as deep as the limit and no deeper, brackets in strings not counted", () => {
    const nested = (depth: number): Uint8Array =>
      bytes("[".repeat(depth) + `"${'[{\\"'.repeat(400)}"` + "]".repeat(depth))
    assert.match(faultOf(nested(jsonDepthMax)), /^parsed/)
    assert.strictEqual(faultOf(nested(jsonDepthMax + 1)), "body: nested deeper than 64")
    assert.strictEqual(faultOf(bytes("[".repeat(8 * 1024 * 1024))), "body: nested deeper than 64")
  })

  it("takes the last of duplicate keys", () => {
    assert.deepStrictEqual(parseJson(bytes('{"a":1,"a":2}')), { a: 2 })
  })
})

describe("the steps", () => {
  it("are a named list", () => {
    assert.deepStrictEqual(
      steps.map(({ name }) => name),
      ["time", "page", "address", "hostname", "agent", "source", "country", "visitor"]
    )
  })

  it("leave neither address nor User-Agent in the stored event", () => {
    const event = stored(fromBrowser({ r: "https://news.ycombinator.com/" }, { address: "203.0.113.77" }))
    const text = JSON.stringify(event, (_, value) => (typeof value === "bigint" ? String(value) : value))
    assert.notInclude(text, "203.0.113.77")
    assert.notInclude(text, "Mozilla")
  })
})

describe("the kinds of a browser event", () => {
  it("each ask for the keys that they need", () => {
    assert.strictEqual(fromBrowser({ u: null }), "u: is required")
    assert.strictEqual(fromBrowser({ k: "event", n: null }), "n: is required")
    assert.strictEqual(fromBrowser({ k: "engage", u: null, e: 5 }), "pv: is required")
    assert.strictEqual(fromBrowser({ k: "engage", u: null, pv: "", e: 5 }), "pv: is required")
    assert.strictEqual(fromBrowser({ k: "engage", u: null, pv: "abc" }), "e: is required")
  })

  it("store an engage ping without a page, with its page view's id and its time", () => {
    const event = stored(fromBrowser({ k: "engage", u: null, pv: "abc", e: 1500 }))
    assert.deepInclude(event, { kind: "engage", pv: "abc", engagedMillis: 1500, path: "", name: "" })
  })

  it("store an event with its name and properties, and one named pageview as a page view (collect rule 3)", () => {
    const event = stored(fromBrowser({ k: "event", n: "signup", p: { plan: "pro", seats: 3, trial: false } }))
    assert.deepInclude(event, { kind: "event", name: "signup" })
    assert.deepStrictEqual(event.propsKeys, ["plan", "seats", "trial"])
    assert.deepStrictEqual(event.propsValues, ["pro", "3", "false"])
    assert.deepInclude(stored(fromBrowser({ k: "event", n: "pageview" })), { kind: "pageview", name: "" })
    assert.deepInclude(stored(fromServer({ name: "pageview" })), { kind: "pageview", name: "" })
    assert.deepInclude(stored(fromServer({})), { kind: "pageview", name: "" })
    assert.deepInclude(stored(fromServer({ name: "Pageview" })), { kind: "event", name: "Pageview" })
  })
})

describe("what is odd about an event", () => {
  const long = "x".repeat(257)
  const many = Object.fromEntries(Array.from({ length: 31 }, (_, index) => [`key${index}`, index]))
  const cases: ReadonlyArray<readonly [string, unknown, Record<string, string>]> = [
    ["null", { plan: null, seats: 3 }, { seats: "3" }],
    ["text of 257", { plan: long, seats: 3 }, { seats: "3" }],
    ["a list and a map", { a: [], b: {}, c: true }, { c: "true" }],
    ["too large a number", { a: Infinity, b: 1.5 }, { b: "1.5" }],
    ["names of none and of 65", { "": 1, ["k".repeat(65)]: 1, k: "" }, { k: "" }],
    [
      "the 31st",
      many,
      Object.fromEntries(
        Object.entries(many)
          .slice(0, 30)
          .map(([k, v]) => [k, String(v)])
      )
    ],
    ["no map", ["a"], {}],
    ["text", "plan", {}],
    ["nothing", null, {}]
  ]
  it.each(cases)("is left out of its properties, and the event stays: %s", (_, props, kept) => {
    for (const event of [
      stored(fromBrowser({ k: "event", n: "buy", p: props })),
      stored(fromServer({ name: "buy", props }))
    ]) {
      const pairs = event.propsKeys.map((key, index) => [key, event.propsValues[index]])
      assert.deepStrictEqual(Object.fromEntries(pairs), kept)
    }
  })

  it("makes its country unknown, or its address, its visitor and its id absent", () => {
    for (const country of ["T1", "t1", "XX", "ZZ", "EU", "AP", ""]) {
      assert.strictEqual(stored(fromServer({ country })).country, "", country)
    }
    for (const country of ["DEU", "D", "1D", "ÄÖ"]) {
      assert.strictEqual(fromServer({ country }), "country: expected an ISO-3166 alpha-2 code", country)
    }
    const absent = stored(fromServer({ userAgent: chrome }))
    assert.deepStrictEqual(stored(fromServer({ userAgent: chrome, ip: "", visitor: "", id: "" })), absent)
  })
})

describe("the page", () => {
  it("loses query, fragment, port, www. and case of its host", () => {
    const event = stored(fromBrowser({ u: "HTTPS://WWW.Example.org:8443/A/b?x=1&utm_source=mail#top" }))
    assert.deepInclude(event, { hostname: "example.org", path: "/A/b", utmSource: "mail" })
    assert.strictEqual(stored(fromBrowser({ u: "https://example.org" })).path, "/")
    assert.strictEqual(stored(fromServer({ url: "/pricing?x=1#y" })).path, "/pricing")
    assert.deepInclude(stored(fromServer({ url: "//evil.example/x" })), { hostname: "example.org" })
  })

  it("must be an absolute http(s) URL, or from servers a path", () => {
    for (const u of [
      "example.org/x",
      "/x",
      "ftp://example.org/",
      "javascript:alert(1)",
      "https://",
      "https://a b/"
    ]) {
      assert.strictEqual(fromBrowser({ u }), "u: expected an absolute http(s) URL", u)
    }
    for (const url of ["x", "file:///etc/passwd", "http://[::1", `https://${"a".repeat(254)}/`]) {
      assert.strictEqual(
        fromServer({ url }),
        "url: expected an absolute http(s) URL or a path starting with /",
        url
      )
    }
    assert.strictEqual(stored(fromServer({ url: `https://${"a".repeat(253)}/` })).hostname.length, 253)
  })

  it("is cut to the longest path that is kept", () => {
    assert.strictEqual(
      stored(fromServer({ url: `/${"p".repeat(pathLengthMax)}` })).path.length,
      pathLengthMax
    )
  })

  it("is read as browsers read it", () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (text) => {
        const url = new URL(text)
        const page = parsePageUrl(text)
        assert.deepStrictEqual(page, {
          hostname: bareHostname(url.hostname),
          shownHostname: bareHostname(url.hostname),
          path: displayPath(url.pathname).slice(0, pathLengthMax),
          query: url.search
        })
      })
    )
  })

  it("is stored as people read it, its referrer too, in whatever form they come", () => {
    for (const [escaped, path] of [
      ["/%D8%AC%D9%88%D8%A7%D8%A6%D8%B2", "/جوائز"],
      ["/جوائز", "/جوائز"],
      ["/caf%C3%A9%20%26%20bar%21", "/café & bar!"],
      ["/a%2fb%3Fc%23d%25e%2A%5C%0a", "/a%2Fb%3Fc%23d%25e%2A%5C%0A"],
      ["/%E2%80%AEgpj.exe%C2%85%F0%9F%98%80", "/%E2%80%AEgpj.exe%C2%85😀"],
      ["/latin-%E9", "/latin-%E9"],
      ["/100%-%C3%A9", "/100%-%C3%A9"]
    ] as const) {
      assert.strictEqual(stored(fromServer({ url: escaped })).path, path)
      assert.deepInclude(
        stored(
          fromBrowser({ u: `https://example.org${escaped}`, r: `https://xn--bcher-kva.example${escaped}` })
        ),
        { path, referrer: `https://bücher.example${path}`, source: "bücher.example" }
      )
    }
    const long = stored(fromServer({ url: `/${"p".repeat(pathLengthMax - 2)}${"😀".repeat(9)}` })).path
    assert.isTrue(long.isWellFormed())
    assert.strictEqual(long.length, pathLengthMax - 1)
  })

  it("is one page in both forms: a form once read does not change, and leads back into a URL", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "%",
        "%2",
        "%25",
        "%41",
        "%2F",
        "%E2%80%AE",
        "%C3",
        "%A9",
        "%C3%A9",
        "é",
        " ",
        "4",
        "1",
        "*"
      ),
      fc.string({ unit: "grapheme" })
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const path = parsePageUrl(`https://example.org/${pieces.join("")}`)?.path ?? assert.fail("no page")
        assert.strictEqual(displayPath(path), path)
        assert.strictEqual(parsePageUrl(`https://example.org${escapedPath(path)}`)?.path, path)
      }),
      { numRuns: 2000 }
    )
  })
})

describe("the hostname of a browser hit", () => {
  it("is the site's domain or one below it, whatever its case, port and www.; else the hit is ignored", () => {
    for (const host of [
      "example.org",
      "www.example.org",
      "EXAMPLE.org:444",
      "a.b.example.org",
      "example.org."
    ]) {
      assert.strictEqual(typeof fromBrowser({ u: `https://${host}/` }), "object", host)
    }
    for (const host of ["example.com", "evil-example.org", "example.org.evil.com", "org", "localhost"]) {
      assert.strictEqual(fromBrowser({ u: `https://${host}/` }), "hostname", host)
    }
    assert.strictEqual(typeof fromServer({ url: "https://elsewhere.example/" }), "object")
  })

  it("matches international names by their punycode", () => {
    const hostname = parsePageUrl("https://www.BÜCHER.example/")?.hostname ?? ""
    assert.strictEqual(hostname, "xn--bcher-kva.example")
    assert.isTrue(isWithin(`lesen.${hostname}`, "xn--bcher-kva.example"))
    const domain = "xn--bcher-kva.example"
    const site = { dataset: "st_1", domain, visitorSecret: new Uint8Array(32), retentionDays: null }
    const sent = decodeBrowserEvent({ s: "st_1", k: "pageview", u: "https://lesen.bücher.example/" })
    if (sent instanceof FieldFault) return assert.fail(sent.message)
    const rest = { address: "192.0.2.1", userAgent: chrome, countryCode: "", receivedMillis: noon }
    const event = sentByBrowser(site, sent, rest)
    if (event instanceof FieldFault) return assert.fail(event.message)
    assert.deepInclude(process(event, lookups), { hostname: "lesen.bücher.example" })
    assert.strictEqual(bareHostname("www.com"), "www.com")
  })
})

describe("bots", () => {
  it("are dropped, unless the server passes a visitor (collect rule 2)", () => {
    assert.strictEqual(fromBrowser({}, { userAgent: googlebot }), "bot")
    assert.strictEqual(fromServer({ userAgent: googlebot }), "bot")
    assert.strictEqual(typeof fromServer({ userAgent: googlebot, visitor: "v1" }), "object")
    assert.strictEqual(typeof fromServer({}), "object")
  })

  it("are faults first: an event that is wrong is told so, whoever sends it", () => {
    assert.match(String(fromServer({ userAgent: googlebot, ip: "1.2.3" })), /^ip: /)
  })
})

describe("the User-Agent", () => {
  it("gives browser, major version, system and one of three devices", () => {
    const { browser, browserVersion, os, device } = stored(fromBrowser({}))
    assert.deepStrictEqual(
      { browser, browserVersion, os, device },
      {
        browser: "Chrome",
        browserVersion: "130",
        os: "Windows",
        device: "desktop"
      }
    )
    const iphone =
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
    assert.deepInclude(parseAgent(iphone), { browser: "Safari", version: "18", os: "iOS", device: "mobile" })
    assert.strictEqual(parseAgent(iphone.replaceAll("iPhone", "iPad")).device, "tablet")
    assert.deepInclude(parseAgent("?"), { browser: "", version: "", os: "", device: "" })
  })

  it("is cut before it is hashed: what is behind the limit makes no other visitor", () => {
    const long = chrome.padEnd(userAgentLengthMax, "x")
    const one = stored(fromBrowser({}, { userAgent: `${long}1` }))
    const two = stored(fromBrowser({}, { userAgent: `${long}2` }))
    assert.strictEqual(one.visitor, two.visitor)
  })
})

describe("the country", () => {
  it("is the CDN's, else the address's, else the time zone's", () => {
    const from = (countryCode: string, address: string, tz: string) =>
      stored(fromBrowser({ tz }, { countryCode, address })).country
    assert.strictEqual(from("fr", "192.0.2.44", "Europe/Berlin"), "FR")
    assert.strictEqual(from("", "192.0.2.44", "Europe/Berlin"), "NL")
    assert.strictEqual(from("", "192.0.2.1", "Europe/Berlin"), "DE")
    assert.strictEqual(from("XX", "192.0.2.1", "Nowhere/Land"), "")
    assert.strictEqual(from("T1", "192.0.2.1", "Europe/Berlin"), "DE")
    assert.strictEqual(stored(fromServer({ country: "jp" })).country, "JP")
    assert.strictEqual(stored(fromServer({ ip: "192.0.2.44" })).country, "NL")
  })

  it("knows old names of zones and no country for UTC", () => {
    assert.strictEqual(countryOfZone("Asia/Calcutta"), "IN")
    assert.strictEqual(countryOfZone("UTC"), "")
    assert.strictEqual(countryOfZone("constructor"), "")
  })
})

describe("an address", () => {
  it("of a collected event is IPv4 or IPv6, and named when it is not", () => {
    for (const ip of ["192.0.2.1", "2001:db8::1", "::", "::ffff:192.0.2.1"]) {
      assert.strictEqual(typeof fromServer({ ip }), "object", ip)
    }
    for (const ip of ["192.0.2", "192.0.2.256", "192.0.2.01", "2001:db8", "fe80::1%eth0", "example.org"]) {
      assert.strictEqual(fromServer({ ip }), "ip: expected an IPv4 or IPv6 address", ip)
    }
  })

  it("has one form however it is written", () => {
    assert.strictEqual(canonicalAddress("2001:DB8:0:0:0:0:0:1"), canonicalAddress("2001:db8::1"))
    assert.strictEqual(canonicalAddress("::ffff:192.0.2.1"), "192.0.2.1")
    assert.strictEqual(canonicalAddress("::ffff:c000:201"), "192.0.2.1")
    fc.assert(
      fc.property(fc.ipV6().filter(isIPv6), (text) => {
        const canonical = canonicalAddress(text) ?? ""
        assert.strictEqual(canonicalAddress(text.toUpperCase()), canonical)
        assert.strictEqual(canonicalAddress(canonical), canonical)
      })
    )
  })
})

describe("the visitor", () => {
  const visitor = (fields: Record<string, unknown>, nowMillis = noon) =>
    stored(fromServer(fields, nowMillis)).visitor
  const day = 86_400_000

  it("is one for one address and User-Agent on one day, and another for any other", () => {
    const fields = { ip: "192.0.2.1", userAgent: chrome }
    assert.strictEqual(visitor(fields), visitor({ ...fields, url: "/else" }, noon + 1000))
    assert.notStrictEqual(visitor(fields), visitor({ ...fields, ip: "192.0.2.2" }))
    assert.notStrictEqual(visitor(fields), visitor({ ...fields, userAgent: chrome.replace("130", "131") }))
    assert.notStrictEqual(visitor(fields), visitor(fields, noon + day))
    assert.strictEqual(visitor({ ip: "2001:db8::1" }), visitor({ ip: "2001:DB8:0::1" }))
    assert.strictEqual(visitor(fields), stored(fromBrowser({})).visitor)
  })

  it("changes with the salt, and with the event's day under one salt", () => {
    const salted = { ...lookups, saltAt: () => ({ day: 1, text: "another" }) }
    assert.notStrictEqual(stored(fromServer({})).visitor, stored(fromServer({}, noon, salted)).visitor)
    assert.notStrictEqual(visitor({}), visitor({ timestamp: noon - day }))
  })

  it("by the caller's key needs no salt, lasts a UTC day, and ignores address and User-Agent", () => {
    const key = { visitor: "customer-7" }
    assert.strictEqual(visitor({ ...key, ip: "192.0.2.1" }), visitor({ ...key, userAgent: chrome }))
    assert.strictEqual(visitor(key), visitor({ ...key, timestamp: noon }, noon + 3 * day))
    assert.notStrictEqual(visitor(key), visitor(key, noon + day))
    assert.notStrictEqual(visitor(key), visitor({ visitor: "customer-8" }))
  })
})

describe("a timestamp", () => {
  const at = (timestamp: unknown) => {
    const result = fromServer({ timestamp })
    return typeof result === "string" ? result : result.ts
  }

  it("is ISO-8601 with an offset or epoch milliseconds; none is now", () => {
    assert.strictEqual(at("2026-11-21T11:00:00Z"), noon - 3_600_000)
    assert.strictEqual(at("2026-11-21T12:00:00.123456+01:00"), noon - 3_600_000 + 123)
    assert.strictEqual(at(noon - 5.5), noon - 6)
    assert.strictEqual(at(undefined), noon)
    assert.strictEqual(at(null), noon)
    const wrong = "timestamp: expected an ISO-8601 instant with an offset, or epoch milliseconds"
    for (const text of [
      "yesterday",
      "2026-11-21",
      "2026-11-21T11:00:00",
      "2026-02-31T00:00:00Z",
      String(noon),
      true,
      {}
    ]) {
      assert.strictEqual(at(text), wrong)
    }
  })

  it("is at most 7 days in the past, never in the future", () => {
    assert.strictEqual(at(noon - eventAgeMaxMillis), noon - eventAgeMaxMillis)
    assert.strictEqual(at(noon - eventAgeMaxMillis - 1), "timestamp: must be at most 7 days in the past")
    assert.strictEqual(at(noon), noon)
    assert.strictEqual(at(noon + 1), "timestamp: must not be in the future")
  })
})

describe("the source", () => {
  const from = (r: string | null, query = "") => {
    const { referrer, source, channel } = stored(fromBrowser({ r, u: `https://example.org/${query}` }))
    return { referrer, source, channel }
  }

  it("is utm_source, else the referrer's name, else its domain; the site itself and none are unknown", () => {
    assert.deepStrictEqual(from("https://www.google.com/search?q=x#y"), {
      referrer: "https://google.com/search",
      source: "Google",
      channel: "Search"
    })
    assert.strictEqual(from("https://www.google.co.uk/").source, "Google")
    assert.strictEqual(from("https://news.ycombinator.com/item?id=1").source, "Hacker News")
    assert.strictEqual(from("https://en.m.wikipedia.org/wiki/X").source, "Wikipedia")
    assert.strictEqual(from("https://blog.partner.example/post").source, "blog.partner.example")
    assert.deepStrictEqual(from("https://www.example.org/a"), { referrer: "", source: "", channel: "Direct" })
    assert.deepStrictEqual(from("https://shop.example.org/a"), {
      referrer: "",
      source: "",
      channel: "Direct"
    })
    assert.strictEqual(from(null).source, "")
    assert.strictEqual(
      from("https://google.com/", "?utm_source=News+letter&utm_medium=email").source,
      "News letter"
    )
    assert.strictEqual(from("https://google.com/", "?utm_source=x&utm_medium=email").channel, "Email")
  })

  it("records all five utm fields, decoded and cut", () => {
    const query = "?utm_source=a&utm_medium=b%20c&utm_campaign=d&utm_term=e&utm_content=%C3%BC&utm_source=z"
    assert.deepInclude(stored(fromServer({ url: `/${query}` })), {
      utmSource: "a",
      utmMedium: "b c",
      utmCampaign: "d",
      utmTerm: "e",
      utmContent: "ü"
    })
    assert.strictEqual(stored(fromServer({ url: `/?utm_term=${"t".repeat(257)}` })).utmTerm.length, 256)
  })

  it("cuts a browser's endless referrer instead of refusing the hit", () => {
    assert.strictEqual(
      from(`https://a.example/${"p".repeat(50_000)}`).referrer.length,
      "https://a.example".length + pathLengthMax
    )
  })
})

describe("a bounded cache", () => {
  it("answers as the function does, holds no more than its limit, and keeps what is asked for", () => {
    let computed = 0
    const cache = new BoundedCache(100, (key) => {
      computed++
      return key.toUpperCase()
    })
    for (let round = 0; round < 1000; round++) {
      assert.strictEqual(cache.get("hot"), "HOT")
      assert.strictEqual(cache.get(`k${round}`), `K${round}`)
      assert.isAtMost(cache.size, 100)
    }
    assert.strictEqual(computed, 1001)
  })
})
