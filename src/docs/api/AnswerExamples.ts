import { mailExamples } from "./MailExamples.ts"
import { treeExamples } from "./TreeExamples.ts"

const usage = { prompt_tokens: 12, completion_tokens: 9, total_tokens: 21 }

const router = {
  requested: "collection/best-effort",
  resolved: "openai/gpt-5",
  collection: "collection/best-effort",
  auto_route: true,
  attempts: 2,
  stages: ["primary"],
  charged_usd: 0.0001275,
  covered_by_subscription: false
}

const model = {
  id: "openai/gpt-5",
  object: "model",
  created: 1_754_524_800,
  owned_by: "openai",
  name: "GPT-5",
  description: "A general-purpose model",
  context_length: 400_000,
  architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
  categories: ["vision", "tools", "long-context", "reasoning"],
  pricing: { prompt: "0.000001275", completion: "0.0000102", request: "0", image: "0" },
  supported_parameters: ["max_tokens", "reasoning", "tools"],
  top_provider: { context_length: 400_000, max_completion_tokens: 128_000 }
}

const device = {
  id: "dev_2sJH7aQmXy4TzWcVbN8kLp",
  name: "Laptop",
  platform: "desktop",
  syncRoot: "~/sharefiles",
  lastSeenAt: "2026-11-21T08:30:00.000Z",
  createdAt: "2026-11-20T17:05:12.411Z"
}

const synced = { ownerId: "usr_2sJH7aQmXy4TzWcVbN8kLp", permission: "owner" }

const collection = { id: "col_2sJH7aQmXy4TzWcVbN8kLp", auto_route: true }

/**
 * Answers whose fields depend on each other, by the name of their schema: one field after the other they would make no
 * sense. A test sees that the schemas take them.
 */
export const answerExamples: Readonly<Record<string, unknown>> = {
  ...treeExamples,
  ...mailExamples,
  UploadedFile: {
    name: "may.pdf",
    size: 48_211,
    directUrl: "https://files.example.com/direct/7Yk2sJH7aQmXy4TzWcVbN8",
    fileId: "fv_2sJH7aQmXy4TzWcVbN8kLp",
    versionGroupId: "fg_2sJH7aQmXy4TzWcVbN8kLp",
    version: 3,
    fileHash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    mimeType: "application/pdf",
    directoryId: "dir_2sJH7aQmXy4TzWcVbN8kLp",
    isEncrypted: false
  },
  Device: device,
  DeviceList: { devices: [device] },
  SyncSubscriptions: {
    subscriptions: [
      {
        resourceType: "directory",
        resourceId: "dir_2sJH7aQmXy4TzWcVbN8kLp",
        enabled: true,
        scope: "selected",
        deviceIds: [device.id]
      }
    ],
    excluded: [{ resourceType: "file", resourceId: "fg_2sJH7aQmXy4TzWcVbN8kLp" }]
  },
  SyncManifest: {
    directories: [
      {
        id: "dir_2sJH7aQmXy4TzWcVbN8kLp",
        name: "reports",
        parentId: "dir_7Yk2sJH7aQmXy4TzWcVbN8",
        ...synced,
        encryptionEnabled: false
      }
    ],
    files: [
      {
        versionGroupId: "fg_2sJH7aQmXy4TzWcVbN8kLp",
        currentFileId: "fv_2sJH7aQmXy4TzWcVbN8kLp",
        version: 3,
        fileHash: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        fileSize: 5,
        mimeType: "application/pdf",
        originalName: "may.pdf",
        directoryId: "dir_2sJH7aQmXy4TzWcVbN8kLp",
        isEncrypted: false,
        encryptionKeyId: null,
        ...synced,
        modifiedAt: "2026-11-20T17:05:12.411Z"
      }
    ],
    generatedAt: "2026-11-21T08:30:00.000Z",
    cursor: "MS43NDIxMS4xNzk1MjQ2MjAw"
  },
  BegunCliLogin: {
    token: "2sJH7aQmXy4TzWcVbN8kLp",
    url: "https://signalbox.example.net/cli#2sJH7aQmXy4TzWcVbN8kLp",
    expiresIn: 600,
    digits: "0417"
  },
  PolledCliLogin: { status: "complete", apiKey: "sk_7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG1hUo7Yk2" },
  CliLogin: {
    name: "build.example.net",
    platform: "cli",
    digits: "0417",
    scopes: ["full"],
    expiresAt: "2026-11-21T08:40:00.000Z"
  },
  TokenUsage: usage,
  RouterBlock: router,
  Model: model,
  ModelList: {
    object: "list",
    data: [
      {
        id: "collection/best-effort",
        object: "model",
        owned_by: "collection",
        name: "Best effort",
        collection
      },
      model
    ],
    meta: { total: 1, returned: 1, collections: 1 }
  },
  Collection: {
    ...collection,
    model: "collection/best-effort",
    name: "Best effort",
    slug: "best-effort",
    models: [
      { position: 0, id: "openai/gpt-5", vision: true, free: false, available: true },
      { position: 1, id: "sandbox/free", vision: false, free: true, available: true }
    ]
  },
  ChatCompletion: {
    id: "chatcmpl-7Yk2",
    object: "chat.completion",
    model: "openai/gpt-5",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello!" }, finish_reason: "stop" }],
    usage,
    router
  },
  EmbeddingList: {
    object: "list",
    data: [
      { index: 0, embedding: [0.0132, -0.0071, 0.0248] },
      { index: 1, embedding: [0.0094, 0.0155, -0.0312] }
    ],
    model: "sandbox/embed",
    usage: { prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 },
    router: { ...router, requested: "sandbox/embed", resolved: "sandbox/embed" }
  },
  Ready: {
    status: "ready",
    components: {
      postgres: { status: "up" },
      clickhouse: { status: "degraded", detail: "It does not answer; events wait in the log" }
    }
  },
  ImportedPart: {
    next: 10_000,
    stored: 9_987,
    dropped: { bot: 12 },
    bots: { GPTBot: 12 },
    errors: [{ line: 7, error: "url: expected an absolute URL" }],
    failed: 1
  },
  CollectAnswer: { accepted: 1, results: [{ index: 0, stored: true }] },
  AgentInfo: {
    protocol: 1,
    gateway: {
      url: "wss://signalbox.example.net/api/v1/agent/ws",
      path: "/api/v1/agent/ws",
      auth: "Authorization: Bearer <API_KEY>"
    },
    tools: ["read", "write", "edit", "ls", "find", "grep", "bash"],
    billing: { mode: "credits", plan: null, covers_direct_api: false },
    default_model: "openai/gpt-5",
    models: [{ id: "openai/gpt-5", name: "GPT-5", context_length: 400_000 }],
    downloads: [],
    downloads_available: false,
    downloads_note: "The client is not built here yet",
    install: { source: "node src/clients/agent/signalbox-agent.mjs", binary: "" }
  }
}
