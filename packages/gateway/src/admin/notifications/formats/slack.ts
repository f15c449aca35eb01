import { factsOf, type NoticeMessage, titleOf } from '../message.ts'

/** The longest text of a block. Slack rejects a longer one. */
const MAX_TEXT_CHARS = 3_000

/**
 * Returns a message for an incoming webhook of Slack (Block Kit).
 *
 * `&`, `<` and `>` are escaped, so a name cannot become a link or a mention, and `verbatim` keeps Slack from looking for
 * names and addresses in the text. The link is the only one.
 */
export function toSlack(message: NoticeMessage): object {
  const title = titleOf(message)
  const facts = factsOf(message).map(([label, text]) => `*${label}:* ${escaped(text)}`)
  const links = message.url === undefined ? [] : [`<${linkOf(message.url)}|Open in Toolgate>`]
  const texts = [`*${escaped(title)}*`, ...facts, ...links]
  return {
    text: escaped(title),
    blocks: texts.map((text) => ({ type: 'section', text: { type: 'mrkdwn', text: cut(text), verbatim: true } })),
    unfurl_links: false,
    unfurl_media: false,
  }
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
])

/** Escapes a text. The signs of bold, italic, struck and code text get another look, as Slack has no escape for them. */
function escaped(text: string): string {
  return text
    .replaceAll(/[&<>]/g, (sign) => ENTITIES.get(sign) ?? '')
    .replaceAll('*', '\u2217')
    .replaceAll('~', '\u223c')
    .replaceAll('`', '\u02cb')
    .replaceAll(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\u02cd')
}

/** Cuts between entities. */
function cut(text: string): string {
  if (text.length <= MAX_TEXT_CHARS) return text
  return `${text
    .slice(0, MAX_TEXT_CHARS - 1)
    .replace(/&[a-z]{0,3}$/, '')
    .toWellFormed()}…`
}

function linkOf(url: string): string {
  return url.replaceAll('|', '%7C').replaceAll('<', '%3C').replaceAll('>', '%3E').replaceAll('&', '&amp;')
}
