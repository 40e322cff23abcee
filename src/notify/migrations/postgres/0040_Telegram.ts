import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Chats of Telegram: the bot's place in its updates, codes by which chats join, and the pace. Source: docs/decisions/0043-telegram.md. */
export const telegram: PostgresMigration = {
  id: 40,
  name: "telegram",
  statements: [
    // One row a bot. `next_update`: the first that has had no effect; it moves in the transaction of an update's effect.
    // `answered_at`: when Telegram last answered the poll; `conflicts`: answers 409 in a row.
    `CREATE TABLE telegram_bots (
       id bigint PRIMARY KEY,
       next_update bigint NOT NULL DEFAULT 0,
       updated_at timestamptz,
       answered_at timestamptz NOT NULL DEFAULT now(),
       conflicts integer NOT NULL DEFAULT 0,
       fault text)`,

    // `hash`: SHA-256 of the code. A project with the hash of the link that it was made by, or a subscriber, or both.
    `CREATE TABLE telegram_codes (
       id text COLLATE "C" PRIMARY KEY,
       hash bytea NOT NULL UNIQUE,
       project_id text REFERENCES projects (id) ON DELETE CASCADE,
       join_hash bytea,
       subscriber_id text REFERENCES subscribers (id) ON DELETE CASCADE,
       name text NOT NULL DEFAULT '',
       timezone text NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now(),
       expires_at timestamptz NOT NULL,
       used_at timestamptz)`,
    `CREATE INDEX telegram_codes_expiry ON telegram_codes (expires_at)`,
    `CREATE INDEX telegram_codes_subscriber ON telegram_codes (subscriber_id) WHERE subscriber_id IS NOT NULL`,
    `CREATE INDEX telegram_codes_project ON telegram_codes (project_id) WHERE project_id IS NOT NULL`,

    // A chat is one channel.
    `CREATE UNIQUE INDEX channels_telegram ON channels (address) WHERE kind = 'telegram'`,

    // SHA-256 of the token that the bot told last: beside the one that a browser has.
    `ALTER TABLE subscribers ADD COLUMN bot_token_hash bytea UNIQUE`,

    // The last instants at which the bot wrote to a chat (0: to any), the latest last.
    `CREATE TABLE telegram_turns (
       bot bigint NOT NULL,
       chat bigint NOT NULL,
       sent timestamptz[] NOT NULL DEFAULT '{}',
       at timestamptz NOT NULL DEFAULT '-infinity',
       PRIMARY KEY (bot, chat)) WITH (fillfactor = 50)`,

    // A turn at writing, for all processes together. Answers the milliseconds until it, where it is no further off than p_wait:
    // then it is taken. Else nothing is taken, and `rest` says when to ask again; `is_chat`: because of the chat's own pace. An
    // instant beyond what could have been taken is of a clock that was put back, and does not count.
    `CREATE FUNCTION telegram_turn(p_bot bigint, p_chat bigint, p_group boolean, p_wait double precision,
       p_pace double precision, p_chat_pace double precision, p_group_most integer)
     RETURNS TABLE (wait double precision, rest double precision, is_chat boolean) LANGUAGE plpgsql AS $$
     DECLARE
       instant timestamptz;
       chat_sent timestamptz[];
       chat_at timestamptz;
       bot_at timestamptz;
       ms interval := interval '1 millisecond';
     BEGIN
       INSERT INTO telegram_turns (bot, chat) VALUES (p_bot, p_chat), (p_bot, 0) ON CONFLICT DO NOTHING;
       SELECT t.sent, t.at INTO chat_sent, chat_at FROM telegram_turns t WHERE t.bot = p_bot AND t.chat = p_chat FOR UPDATE;
       SELECT t.at INTO bot_at FROM telegram_turns t WHERE t.bot = p_bot AND t.chat = 0 FOR UPDATE;
       instant := clock_timestamp();
       bot_at := CASE WHEN bot_at > instant + (p_wait + p_pace) * ms THEN instant ELSE greatest(instant, bot_at + p_pace * ms) END;
       chat_sent := ARRAY(SELECT s FROM unnest(chat_sent) s WHERE s > instant - interval '1 minute' AND s <= instant + p_wait * ms ORDER BY s);
       chat_at := greatest(instant, chat_sent[cardinality(chat_sent)] + p_chat_pace * ms,
         CASE WHEN p_group THEN chat_sent[cardinality(chat_sent) - p_group_most + 1] + interval '1 minute' END);
       is_chat := chat_at > bot_at;
       wait := extract(epoch FROM greatest(bot_at, chat_at) - instant) * 1000;
       IF wait > p_wait THEN
         rest := wait;
         wait := NULL;
       ELSE
         UPDATE telegram_turns SET at = greatest(bot_at, chat_at) WHERE bot = p_bot AND chat = 0;
         UPDATE telegram_turns SET at = greatest(bot_at, chat_at), sent = chat_sent || greatest(bot_at, chat_at)
           WHERE bot = p_bot AND chat = p_chat;
       END IF;
       RETURN NEXT;
     END $$`
  ]
}
