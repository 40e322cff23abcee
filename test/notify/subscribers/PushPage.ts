import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  CDPSession,
  Page,
  Worker
} from "playwright-core"
import { until } from "#test/harness/Eventually.ts"
import type { SandboxClient, SandboxSubscription } from "../sandbox/SandboxClient.ts"

/** In the page: Chromium without a push service subscribes at the sandbox. The rest is the browser's own. */
const subscribesAtSandbox = `{
  const of = (made) => made && {
    endpoint: made.endpoint,
    toJSON: () => ({ endpoint: made.endpoint, expirationTime: null, keys: made.keys }),
    unsubscribe: () => unsubscribeAtSandbox().then(() => true)
  }
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (!userVisibleOnly) throw new DOMException("it has to be visible", "NotAllowedError")
    if (Notification.permission !== "granted") throw new DOMException("denied", "NotAllowedError")
    return of(await subscribeAtSandbox(applicationServerKey))
  }
  PushManager.prototype.getSubscription = async () => of(await subscriptionAtSandbox())
}`

/** A browser's profile of its own, with a page. */
export interface PushPage {
  readonly context: BrowserContext
  readonly page: Page
  /** addresses that were asked for */
  readonly requests: ReadonlyArray<string>
  /** errors and violations of the policy */
  readonly complaints: ReadonlyArray<string>
  /** the browser's subscription at the sandbox */
  readonly subscription: () => SandboxSubscription | undefined
  /** another one, of which neither page nor worker has heard */
  readonly renew: () => Promise<SandboxSubscription>
  readonly worker: () => Promise<Worker>
  /** hands a decrypted push to the real worker, as Chromium does, and waits until it has shown a notification */
  readonly deliver: (data: string) => Promise<void>
  readonly close: () => Promise<void>
}

export interface PushPageOptions {
  readonly path: string
  readonly url: string
  readonly sandbox: SandboxClient
  /** false: the browser's own, which reaches none */
  readonly hasPushService?: boolean
  /** of notifications, `granted` unless it is given */
  readonly permission?: "granted" | "denied" | "default"
  /** a script before that of the page */
  readonly before?: string
  readonly shape?: BrowserContextOptions
}

export const openPushPage = async (browser: Browser, options: PushPageOptions): Promise<PushPage> => {
  const { before, hasPushService = true, path, permission = "granted", sandbox, shape = {}, url } = options
  const context = await browser.newContext(shape)
  // All that is not granted is denied from then on.
  if (permission !== "default")
    await context.grantPermissions([permission === "granted" ? "notifications" : "geolocation"], {
      origin: url
    })
  let subscription: SandboxSubscription | undefined
  let applicationServerKey = ""
  const subscribe = async (): Promise<SandboxSubscription> =>
    (subscription = await sandbox.subscribe({ applicationServerKey }))
  await context.exposeFunction("subscribeAtSandbox", async (key: string) => {
    applicationServerKey = key
    return subscription ?? (await subscribe())
  })
  await context.exposeFunction("subscriptionAtSandbox", () => subscription)
  await context.exposeFunction("unsubscribeAtSandbox", () => {
    subscription = undefined
  })
  if (hasPushService) await context.addInitScript(subscribesAtSandbox)
  if (before !== undefined) await context.addInitScript(before)
  const requests: Array<string> = []
  const complaints: Array<string> = []
  context.on("request", (request) => void requests.push(request.url()))
  const page = await context.newPage()
  page.on("pageerror", ({ message }) => void complaints.push(message))
  page.on("console", (message) => {
    const text = message.text()
    // Refusals of the server or the browser, which the page tells in words of its own.
    if (message.type() === "error" && !/^Failed to load resource|does not support the Push API/.test(text))
      complaints.push(text)
  })
  const cdp = await context.newCDPSession(page)
  const registration = watchRegistration(cdp)
  await cdp.send("ServiceWorker.enable")
  await page.goto(`${url}${path}`)
  const worker = async (): Promise<Worker> =>
    context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"))
  return {
    context,
    page,
    requests,
    complaints,
    subscription: () => subscription,
    renew: subscribe,
    worker,
    deliver: async (data) => {
      // A push to a worker that is not active yet is lost.
      await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
      const receiver = await worker()
      const before = await settledIn(receiver)
      await cdp.send("ServiceWorker.deliverPushMessage", {
        origin: new URL(url).origin,
        registrationId: await registration(),
        data
      })
      await until("a notification for the push", async () =>
        (await settledIn(receiver)) > before ? undefined : "none was shown"
      )
    },
    close: () => context.close()
  }
}

const watchRegistration = (cdp: CDPSession): (() => Promise<string>) => {
  let id: string | undefined
  cdp.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
    for (const one of registrations) if (!one.isDeleted) id = one.registrationId
  })
  return async () => {
    await until("a registration", async () => (id === undefined ? "none" : undefined))
    return id ?? ""
  }
}

/**
 * The calls of `showNotification` that have ended. Chromium deletes a notification that is asked for between its storing and
 * its showing (`getNotifications` drops those that are not on display), so a test asks for notifications afterwards only.
 */
const settledIn = (worker: Worker): Promise<number> =>
  worker.evaluate(`{
    if (self.settled === undefined) {
      self.settled = 0
      const show = ServiceWorkerRegistration.prototype.showNotification
      ServiceWorkerRegistration.prototype.showNotification = function (...call) {
        return show.apply(this, call).finally(() => void self.settled++)
      }
    }
    self.settled
  }`)

export interface Shown {
  readonly title: string
  readonly body: string
  readonly tag: string
  readonly actions: ReadonlyArray<string>
}

/** The notifications that the browser shows. */
export const shownBy = (worker: Worker): Promise<ReadonlyArray<Shown>> =>
  worker.evaluate(`registration.getNotifications().then((all) => all.map(({ title, body, tag, actions }) =>
    ({ title, body, tag, actions: actions.map(({ action }) => action) })))`)

/** A click on the notification of this tag; answers the addresses that it opened, and those whose window it focused. */
export const clickedOn = (
  worker: Worker,
  tag: string,
  action = ""
): Promise<{ readonly opened: ReadonlyArray<string>; readonly focused: ReadonlyArray<string> }> =>
  // A window is opened and focused after a click of a person alone.
  worker.evaluate(`(async () => {
    const opened = []
    const focused = []
    clients.openWindow = async (address) => void opened.push(address)
    WindowClient.prototype.focus = async function () { focused.push(this.url) }
    const [notification] = await registration.getNotifications({ tag: ${JSON.stringify(tag)} })
    let done
    const event = new NotificationEvent("notificationclick", { notification, action: ${JSON.stringify(action)} })
    event.waitUntil = (promise) => { done = promise }
    dispatchEvent(event)
    await done
    return { opened, focused }
  })()`)

/** The browser ends its subscription; `next`: it tells the worker of another one, else the worker has to ask for one. */
export const endSubscription = (
  worker: Worker,
  next: SandboxSubscription,
  isTold: boolean
): Promise<{ readonly askedWith?: unknown }> =>
  worker.evaluate(`(async () => {
    const { endpoint, keys } = ${JSON.stringify(next)}
    const made = { endpoint, toJSON: () => ({ endpoint, expirationTime: null, keys }) }
    let askedWith
    let done
    PushManager.prototype.subscribe = async (options) => { askedWith = options; return made }
    const event = Object.assign(new ExtendableEvent("pushsubscriptionchange"), {
      oldSubscription: null,
      newSubscription: ${isTold} ? made : null
    })
    event.waitUntil = (promise) => { done = promise }
    dispatchEvent(event)
    await done
    return { askedWith }
  })()`)
