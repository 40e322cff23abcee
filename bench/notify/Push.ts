import { createECDH, createHash, randomBytes } from "node:crypto"
import { type BenchCase, type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import type { Notice, PushTarget } from "#streams/notify/channels/Channel.ts"
import { curveName, encryptPush } from "#streams/notify/channels/PushEncryption.ts"
import { pushPayload, pushRequest } from "#streams/notify/channels/PushRequest.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import { PushBrowser } from "#test/notify/channels/PushBrowser.ts"

/** The parts of the package that are used; it brings no types. */
interface WebPush {
  readonly generateRequestDetails: (
    subscription: { readonly endpoint: string; readonly keys: Pick<PushTarget, "auth" | "p256dh"> },
    payload: Buffer,
    options: object
  ) => { readonly body: Buffer }
  readonly encrypt: (
    p256dh: string,
    auth: string,
    payload: Buffer,
    encoding: "aes128gcm"
  ) => { readonly cipherText: Buffer }
}

const peer: string = "web-push"

const loadWebPush = async (): Promise<WebPush> => {
  const { default: loaded }: { readonly default: WebPush } = await import(peer)
  return loaded
}

export const nowMillis = Date.UTC(2026, 10, 22, 12)
export const subject = "mailto:ops@example.com"

const notice: Notice = {
  deliveryId: "dlv_0123456789abcdefABCDEF",
  messageId: "msg_0123456789abcdefABCDEF",
  project: { slug: "nightly", name: "Nightly jobs" },
  app: "backup",
  message: "",
  pageUrl: `https://signalbox.example.com/n/m/${"a".repeat(40)}`,
  hasView: true,
  settingsUrl: `https://signalbox.example.com/n/me#sbt_${"a".repeat(40)}`,
  priority: "normal",
  hasPaperclip: false,
  createdAtMillis: nowMillis,
  expiresAtMillis: nowMillis + 72 * 3_600_000
}

/** The notice whose payload is so long. */
export const noticeOf = (bytes: number): Notice => ({
  ...notice,
  message: "a".repeat(bytes - pushPayload(notice).length)
})

const services = ["https://fcm.googleapis.com/fcm/send", "https://updates.push.services.mozilla.com/wpush/v2"]

const subscribers = 1_000

const subscribe = (n: number): PushTarget => ({
  endpoint: `${services[n % services.length]}/${randomBytes(100).toString("base64url")}`,
  p256dh: createECDH(curveName).generateKeys("base64url", "uncompressed"),
  auth: randomBytes(16).toString("base64url")
})

/** Encrypts for a thousand browsers in turn; one more decrypts, to show that the push is right. */
const measured = async (
  context: CaseContext,
  push: (target: PushTarget) => Uint8Array
): Promise<Measurement> => {
  const targets = Array.from({ length: subscribers }, (_, n) => subscribe(n))
  const work = sized(context, { tiny: 50, quick: 6_000, full: 40_000 })
  const times = (count: number) => {
    for (let n = 0; n < count; n++) push(targets[n % subscribers] as PushTarget)
  }
  times(work / 5)
  const [own, startedAt] = [process.cpuUsage(), performance.now()]
  times(work)
  const elapsedMillis = performance.now() - startedAt
  const { system, user } = process.cpuUsage(own)
  const browser = await PushBrowser.make()
  const { plaintext } = await browser.decrypt(push(browser.target))
  return {
    work,
    elapsedMillis,
    cpuMillis: (user + system) / 1_000,
    result: createHash("sha256").update(plaintext).digest("hex")
  }
}

type Run = (bytes: number) => BenchCase["run"]

/** One request of the package, as its `sendNotification` makes it. */
export const webPush: Run = (bytes) => async (context) => {
  const { generateRequestDetails } = await loadWebPush()
  const payload = pushPayload(noticeOf(bytes))
  const keys = createECDH(curveName)
  keys.generateKeys()
  const vapidDetails = {
    subject,
    publicKey: keys.getPublicKey("base64url", "uncompressed"),
    privateKey: keys.getPrivateKey("base64url")
  }
  const options = { TTL: 259_200, urgency: "high", topic: notice.deliveryId, vapidDetails }
  return measured(
    context,
    ({ auth, endpoint, p256dh }) =>
      generateRequestDetails({ endpoint, keys: { auth, p256dh } }, payload, options).body
  )
}

/** The package without its signature. */
export const webPushEncryption: Run = (bytes) => async (context) => {
  const { encrypt } = await loadWebPush()
  const payload = pushPayload(noticeOf(bytes))
  return measured(context, ({ auth, p256dh }) => encrypt(p256dh, auth, payload, "aes128gcm").cipherText)
}

const vapidOf = () => new Vapid({ secret: randomBytes(32), subject })

/** The same work: a payload that is there, encrypted, and the header that authorises it. */
export const ours: Run = (bytes) => (context) => {
  const payload = pushPayload(noticeOf(bytes))
  const vapid = vapidOf()
  return measured(context, (target) => {
    const authorization = vapid.authorization(new URL(target.endpoint).origin, nowMillis)
    if (authorization === "") throw new Error("not authorised")
    return encryptPush(payload, target)
  })
}

/** All that the server does for a push: its payload too. */
export const fromNotice: Run = (bytes) => (context) => {
  const long = noticeOf(bytes)
  const vapid = vapidOf()
  return measured(context, (target) => pushRequest(target, long, { vapid, nowMillis }).body)
}
