import { factsOf, type NoticeMessage, titleOf } from '../message.ts'

/**
 * Returns a message for a webhook of Teams' Workflows: an Adaptive Card.
 *
 * Each text is a `TextRun`, which is the element without Markdown, so names cannot become links. Mentions need an entity
 * that the card does not have.
 */
export function toTeams(message: NoticeMessage): object {
  const facts = factsOf(message).map(([label, text]) => line([run(`${label}: `, { isBold: true }), run(text)]))
  const open = { type: 'Action.OpenUrl', title: 'Open in Toolgate', url: message.url }
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          fallbackText: unevaluated(titleOf(message)),
          body: [line([run(titleOf(message), { isBold: true, size: 'Large' })]), ...facts],
          ...(message.url === undefined ? {} : { actions: [open] }),
        },
      },
    ],
  }
}

function line(inlines: readonly object[]): object {
  return { type: 'RichTextBlock', inlines }
}

function run(
  text: string,
  { isBold = false, size }: { readonly isBold?: boolean; readonly size?: string } = {},
): object {
  return {
    type: 'TextRun',
    text: unevaluated(text),
    ...(isBold && { weight: 'Bolder' }),
    ...(size !== undefined && { size }),
  }
}

/** Separates the braces of functions of a card, such as `{{DATE(…)}}`, and of templates. */
function unevaluated(text: string): string {
  return text.replaceAll('{{', '{ {').replaceAll('${', '$ {')
}
