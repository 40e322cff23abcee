const mcpCall = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "send_notification",
    arguments: { app: "agent", message: "The change is ready for a look" }
  }
}

/** Bodies of requests that are worth sending, by operation. A test sees that each has one, and that its schema takes it. */
export const requestExamples: Readonly<Record<string, unknown>> = {
  "account.echoUser": { email: "ada@example.org", name: "Ada" },
  "admin.createUser": { email: "ada@example.org", name: "Ada", role: "user" },
  "admin.updateUser": { name: "Ada Lovelace", role: "admin" },
  "session.createSession": { ticket: "slt_7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG1hUo7Yk2" },
  "keys.createKey": {
    name: "Laptop of Ada",
    kind: "router",
    models: ["sandbox/echo", "sandbox/free"],
    spend_limit_usd: 5,
    expires_at: "2027-01-01T00:00:00Z"
  },
  "keys.updateKey": { spend_limit_usd: 10 },
  "directories.createDirectory": { name: "reports", parentId: "dir_2sJH7aQmXy4TzWcVbN8kLp" },
  "directories.updateDirectory": { name: "reports of 2026" },
  "storedFiles.updateFile": { name: "june.pdf", onConflict: "rename" },
  "storedFiles.copyFile": { directoryId: "dir_2sJH7aQmXy4TzWcVbN8kLp" },
  "devices.createDevice": { name: "Laptop", platform: "desktop", syncRoot: "~/sharefiles" },
  "devices.updateDevice": { name: "Laptop of Ada" },
  "cliLogin.beginCliLogin": { name: "build.example.net", platform: "cli" },
  "cliLogin.readCliLogin": { token: "2sJH7aQmXy4TzWcVbN8kLp" },
  "cliLogin.completeCliLogin": { token: "2sJH7aQmXy4TzWcVbN8kLp", scopes: ["read", "write"] },
  "sync.setSyncFlag": {
    resourceType: "directory",
    resourceId: "dir_2sJH7aQmXy4TzWcVbN8kLp",
    scope: "selected",
    deviceIds: ["dev_2sJH7aQmXy4TzWcVbN8kLp"]
  },
  "sites.createSite": { name: "Example", domain: "example.com", timezone: "Europe/Berlin" },
  "sites.updateSite": { public: true },
  "rebuild.rebuildVisits": { from: "2026-11-01", to: "2026-11-30", check: true },
  "collections.createCollection": {
    name: "Best effort",
    auto_route: true,
    models: ["sandbox/fails", "sandbox/echo"]
  },
  "collections.updateCollection": { models: ["sandbox/echo", "sandbox/free"] },
  "jobs.redriveJobs": { ids: ["job_2sJH7aQmXy4TzWcVbN8kLp"] },
  "markups.setMarkup": { percent: 2 },
  "credits.topUp": { user_id: "usr_2sJH7aQmXy4TzWcVbN8kLp", amount_usd: 20, note: "Invoice 42" },
  "plans.createPlan": {
    name: "Team",
    price_usd: 20,
    scope: "all",
    covers_direct_api: true,
    models: "*",
    allowances: { hour: 200_000, day: 1_000_000, week: 5_000_000 }
  },
  "subscriptions.createSubscription": {
    user_id: "usr_2sJH7aQmXy4TzWcVbN8kLp",
    plan_id: "pln_2sJH7aQmXy4TzWcVbN8kLp",
    current_period_end: "2026-12-21T00:00:00Z"
  },
  "ingest.browserEvent": {
    s: "st_2sJH7aQmXy4TzWcVbN8kLp",
    k: "event",
    n: "Signup",
    u: "https://example.com/pricing",
    p: { plan: "pro" }
  },
  "ingest.collect": {
    url: "https://example.com/pricing",
    name: "Signup",
    ip: "203.0.113.7",
    userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    props: { plan: "pro" }
  },
  "mail.sendMail": {
    from: "shop@example.com",
    to: "Ada <ada@example.org>",
    subject: "Your invoice",
    html: "<p>Thank you, Ada.</p>",
    attachments: [{ filename: "invoice.txt", content: "MTAgRVVSCg==" }],
    headers: { "X-Campaign-ID": "invoices" }
  },
  "mail.sendMailShort": {
    from: "shop@example.com",
    to: "ada@example.org",
    subject: "Your code",
    text: "It is 4711."
  },
  "mailBounces.reportBounce": {
    message_id: "eml_2sJH7aQmXy4TzWcVbN8kLp",
    recipient: "ada@example.org",
    type: "hard",
    detail: "550 5.1.1 no such user"
  },
  "mailDomains.createMailDomain": { name: "example.com" },
  "mailSuppressions.addSuppression": { address: "ada@example.org", note: "asked by phone" },
  "projects.createProject": { name: "Backups", slug: "backups", description: "Of every night" },
  "projects.updateProject": { joining: "closed" },
  "projectKeys.createProjectKey": { name: "backup.sh", projects: ["backups"], rateLimitPerMinute: 30 },
  "projectKeys.updateProjectKey": { projects: "all" },
  "subscribers.addSubscriber": { name: "Pager", url: "https://hooks.example.net/notifications" },
  "joining.joinProject": {
    name: "Ada",
    timezone: "Europe/Berlin",
    webhook: { url: "https://hooks.example.net/notifications" }
  },
  "telegram.joinByTelegram": { name: "Ada", timezone: "Europe/Berlin" },
  "settings.updateSettings": { delivery: "daily", digestAt: "18:00", quietFrom: "22:00", quietTo: "07:00" },
  "settings.updateSubscription": { delivery: "instant" },
  "settings.addChannel": { webhook: { url: "https://hooks.example.net/notifications", name: "Pager" } },
  "settings.updateChannel": { state: "off" },
  "messages.sendMessage": {
    app: "backup.sh",
    message: "The backup of tonight is done",
    project: "backups",
    body: "# 42 files\n\nNone failed."
  },
  "shareLinks.createShareLink": {
    fileId: "fv_2sJH7aQmXy4TzWcVbN8kLp",
    singleUse: true,
    expiresInMinutes: 1440
  },
  "deliveries.redriveDeliveries": { project: "backups" },
  "mcp.call": mcpCall,
  "mcp.callUnversioned": mcpCall,
  "completions.complete": {
    model: "sandbox/free",
    messages: [{ role: "user", content: "Say hello" }],
    max_tokens: 100
  },
  "completions.embed": { model: "sandbox/embed", input: ["A text", "Another one"] }
}

/** Bodies that are no JSON, as `curl` sends them. */
export const otherBodies: Readonly<Record<string, string>> = {
  "account.uploadFile": "-F file=@report.pdf",
  "direct.takeLink": "-d password=secret",
  "attachments.uploadAttachment": "-T report.pdf -X POST",
  "transfers.cliUpload": "-F files=@report.pdf",
  "transfers.uploadFiles": "-F files=@report.pdf -F path=reports/may.pdf",
  "transfers.uploadRaw": "-T report.pdf",
  "uploads.createUpload":
    "-X POST -H 'Tus-Resumable: 1.0.0' -H 'Upload-Length: 1048576' -H 'Upload-Metadata: filename cmVwb3J0LnBkZg=='",
  "uploads.appendToUpload":
    "-X PATCH -H 'Tus-Resumable: 1.0.0' -H 'Upload-Offset: 0' -H 'Content-Type: application/offset+octet-stream' " +
    "--data-binary @report.pdf",
  "send.sendFile": "-F file=@report.pdf -F target=inbox",
  "mailSuppressions.importSuppressions": "-H 'Content-Type: text/csv' --data-binary @suppressions.csv",
  "import.importEvents": "-H 'Content-Type: application/x-ndjson' --data-binary @events.ndjson"
}

const id = "2sJH7aQmXy4TzWcVbN8kLp"

/** Example values of path parameters, by the segment in front of each, or by two of them. */
const pathValues: Readonly<Record<string, string>> = {
  emails: "eml_2sJH7aQmXy4TzWcVbN8kLp",
  inbox: "mdl_2sJH7aQmXy4TzWcVbN8kLp",
  "emails/domains": "dom_2sJH7aQmXy4TzWcVbN8kLp",
  suppressions: "sup_2sJH7aQmXy4TzWcVbN8kLp",
  files: `fil_${id}`,
  download: "root",
  "api/files": `fv_${id}`,
  versions: `fv_${id}`,
  directories: `dir_${id}`,
  trash: `tsh_${id}`,
  uploads: `upl_${id}`,
  users: `usr_${id}`,
  keys: `key_${id}`,
  sites: `st_${id}`,
  collections: `col_${id}`,
  plans: `pln_${id}`,
  subscriptions: `sub_${id}`,
  sessions: `ses_${id}`,
  devices: `dev_${id}`,
  projects: "backups",
  "project-keys": `pky_${id}`,
  messages: `msg_${id}`,
  subscribers: `sbr_${id}`,
  channels: `chn_${id}`,
  "telegram-codes": `tgc_${id}`,
  "share-links": "4fJ2mQ0sXb7RkT1zYw8aLc",
  direct: "4fJ2mQ0sXb7RkT1zYw8aLc",
  join: "7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG1hUo7Yk2",
  models: "sandbox%2Fecho",
  upload: "docs",
  markups: "openai",
  quarantine: "calls",
  jobs: "sweep-files"
}

const byName: Readonly<Record<string, string>> = { provider: "sandbox", name: "echo", offset: "4096" }

/** A path that could be asked for. */
export const examplePath = (path: string): string => {
  if (path.endsWith("/{provider}/{name}")) return path.replace("{provider}/{name}", "sandbox/echo")
  const segments = path.split("/")
  return segments
    .map((segment, index) => {
      const [, name] = /^\{(\w+)\}$/.exec(segment) ?? []
      if (segment === "*") return "reports/may.pdf"
      if (name === undefined) return segment
      const before = segments[index - 1] ?? ""
      const value = pathValues[`${segments[index - 2] ?? ""}/${before}`] ?? pathValues[before]
      return value ?? byName[name] ?? segment
    })
    .join("/")
}

/** Parameters without which an operation answers 400. */
export const requiredQueries: Readonly<Record<string, string>> = {
  "import.importEvents": "import=logs-2026-10&offset=0"
}
