import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql/SqlError"
import { headersOf } from "#schemas/core/Problem.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { packed, type StaticAnswer, staticAnswer, staticRoute } from "#src/http/Static.ts"
import { VapidKey } from "../delivery/VapidKey.ts"
import {
  awayPage,
  clientPath,
  manifestPath,
  type NotifyPage,
  styleAnswer,
  stylePath
} from "../pages/NotifyPage.ts"
import {
  closedPage,
  confirmedPage,
  confirmPage,
  joinPage,
  noConfirmPage,
  noProjectPage,
  settingsPage
} from "../pages/SubscriberPages.ts"
import { TelegramBot } from "../telegram/TelegramBot.ts"
import { type Confirming, Confirmations, confirmPath } from "./Confirmations.ts"
import { Joining } from "./Joining.ts"
import { settingsPath } from "./SettingsRoutes.ts"

const scripts = ["browser.js", "join.js", "settings.js", "telegram.js", "times.js", "sw.js"] as const
const icons = [192, 512] as const

/** Additions of these routes to the known paths of the API. */
export const paths = [
  ["GET", "/n/join/:token"],
  ["GET", settingsPath],
  ["GET", `${confirmPath}/:token`],
  ["POST", `${confirmPath}/:token`],
  ["GET", stylePath],
  ["GET", manifestPath],
  ...scripts.map((name) => ["GET", clientPath(name)] as const),
  ...icons.map((size) => ["GET", clientPath(`icon-${size}.png`)] as const)
] as const

const home = normalize(join(import.meta.dirname, "../../clients/notify"))

const answerOf = ({ contentType, headers, status, text }: NotifyPage) =>
  HttpServerResponse.text(text, { status, contentType, headers })

/** Without `start_url` the app on a home screen begins with the page that it was made of. */
const manifest = {
  name: "Signalbox notifications",
  short_name: "Signalbox",
  scope: "/n/",
  display: "standalone",
  background_color: "#fbfbf9",
  theme_color: "#1b6b57",
  icons: icons.map((size) => ({
    src: clientPath(`icon-${size}.png`),
    sizes: `${size}x${size}`,
    type: "image/png",
    purpose: "any"
  }))
}

const assets = () => {
  const script = (name: string): StaticAnswer =>
    staticAnswer({
      bodies: packed(readFileSync(join(home, name), "utf8")),
      contentType: "text/javascript; charset=utf-8",
      caching: "no-cache",
      // A worker has a policy of its own.
      headers: { "content-security-policy": "default-src 'none'; connect-src 'self'; img-src 'self'" }
    })
  const icon = (size: number): StaticAnswer =>
    staticAnswer({
      bodies: { identity: readFileSync(join(home, `icon-${size}.png`)) },
      contentType: "image/png",
      caching: "public, max-age=86400"
    })
  return [
    staticRoute(stylePath, styleAnswer()),
    staticRoute(
      manifestPath,
      staticAnswer({
        bodies: packed(JSON.stringify(manifest)),
        contentType: "application/manifest+json",
        caching: "no-cache"
      })
    ),
    ...scripts.map((name) => staticRoute(clientPath(name), script(name))),
    ...icons.map((size) => staticRoute(clientPath(`icon-${size}.png`), icon(size)))
  ]
}

/** The parameter `token` of the path. */
const token = Effect.map(HttpRouter.params, ({ token: text = "" }) => text)

/** A page, or the one that says that a store is away. */
const shown = <R>(page: Effect.Effect<NotifyPage, SqlError, R>) =>
  page.pipe(
    storeAway,
    Effect.map(answerOf),
    Effect.catchTag("ServiceUnavailable", (problem) =>
      Effect.succeed(HttpServerResponse.setHeaders(answerOf(awayPage()), headersOf(problem)))
    )
  )

const confirmation = (found: Confirming | undefined): NotifyPage => {
  if (found === undefined) return noConfirmPage()
  return found.isConfirmed ? confirmedPage(found.host) : confirmPage(found.host)
}

/** Pages of subscribers, their scripts and their worker. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const joining = yield* Joining
    const confirmations = yield* Confirmations
    const { publicKey } = yield* VapidKey
    const hasTelegram = (yield* TelegramBot).bot !== undefined
    const ofJoining = token.pipe(
      Effect.flatMap(joining.project),
      Effect.map((project) => joinPage(project, publicKey, hasTelegram)),
      Effect.catchTags({
        NotFound: () => Effect.succeed(noProjectPage()),
        Gone: () => Effect.succeed(closedPage())
      })
    )
    const settings = answerOf(settingsPage(hasTelegram))
    return Layer.mergeAll(
      HttpRouter.add("GET", "/n/join/:token", shown(ofJoining)),
      HttpRouter.add("GET", settingsPath, Effect.succeed(settings)),
      HttpRouter.add(
        "GET",
        `${confirmPath}/:token`,
        shown(Effect.map(Effect.flatMap(token, confirmations.find), confirmation))
      ),
      HttpRouter.add(
        "POST",
        `${confirmPath}/:token`,
        shown(Effect.map(Effect.flatMap(token, confirmations.confirm), confirmation))
      ),
      ...assets()
    )
  })
)
