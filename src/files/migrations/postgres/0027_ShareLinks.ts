import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Share links, and the uses of them. */
export const shareLinks: PostgresMigration = {
  id: 27,
  name: "share links",
  statements: [
    // `token_sealed`: the token under a key of the server, for its owner's lists; null: an upload's own link, which no list has.
    // `version_id`: of a pinned one; null: the file's current version. What a link names may be gone: then it leads nowhere.
    // `takes_files`: it takes files into the directory, and shows nothing of it. `password`: salt and scrypt of it.
    `CREATE TABLE share_links (
       token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
       token_sealed bytea,
       user_id text NOT NULL REFERENCES users (id),
       group_id text,
       version_id text CHECK (version_id IS NULL OR group_id IS NOT NULL),
       directory_id text CHECK (num_nonnulls(group_id, directory_id) = 1),
       takes_files boolean NOT NULL DEFAULT false CHECK (NOT takes_files OR directory_id IS NOT NULL),
       label text,
       max_requests integer CHECK (max_requests > 0),
       uses integer NOT NULL DEFAULT 0 CHECK (uses >= 0),
       password bytea CHECK (length(password) = 48),
       expires_at timestamptz,
       created_at timestamptz NOT NULL,
       CHECK (uses <= max_requests))`,
    `CREATE INDEX share_links_user ON share_links (user_id, created_at, token_hash) WHERE token_sealed IS NOT NULL`,
    `CREATE INDEX share_links_group ON share_links (group_id) WHERE token_sealed IS NOT NULL AND group_id IS NOT NULL`,
    `CREATE INDEX share_links_directory ON share_links (directory_id) WHERE directory_id IS NOT NULL`,
    `CREATE INDEX share_links_expiry ON share_links (expires_at) WHERE expires_at IS NOT NULL`,

    // A download: its requests until `open_until`. `held`: bytes that count against twice its size, those of answers under way
    // included. `lost`: bytes of answers that were cut, which do not count. `ticket_hash`: who shows the ticket goes on with it.
    `CREATE TABLE share_uses (
       id text PRIMARY KEY,
       token_hash bytea NOT NULL REFERENCES share_links (token_hash) ON DELETE CASCADE,
       ticket_hash bytea UNIQUE CHECK (length(ticket_hash) = 32),
       version_id text,
       size bigint NOT NULL CHECK (size >= 0),
       held bigint NOT NULL CHECK (held >= 0),
       lost bigint NOT NULL DEFAULT 0,
       sent bigint NOT NULL DEFAULT 0,
       is_complete boolean NOT NULL DEFAULT false,
       address text NOT NULL,
       agent text NOT NULL,
       started_at timestamptz NOT NULL,
       open_until timestamptz NOT NULL)`,
    `CREATE INDEX share_uses_link ON share_uses (token_hash, started_at)`,
    `CREATE INDEX share_uses_started ON share_uses (started_at)`,
    `CREATE INDEX share_uses_untaken ON share_uses (open_until) WHERE sent = 0 AND ticket_hash IS NOT NULL`
  ]
}
