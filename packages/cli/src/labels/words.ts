/** The effects of a tool on the world. `reads`: none. `writes`: a change that can be reverted and is sent to nobody. */
export const EFFECTS = ['egress', 'destructive', 'identity', 'commits', 'writes', 'reads'] as const
export type ToolEffect = (typeof EFFECTS)[number]

/** Verbs by effect. The first word of a tool's name is usually a verb. */
const VERBS: Readonly<Record<Exclude<ToolEffect, 'identity'>, string>> = {
  egress:
    'send post publish share invite forward reply email mail message notify transfer pay wire donate tweet upload submit dm broadcast announce comment respond export call dial text ping webhook request',
  destructive:
    'delete remove cancel drop purge erase destroy revoke kill terminate clear reset truncate wipe close ban kick unshare uninstall deactivate disable trash discard stop abort prune reject decline',
  commits:
    'book reserve buy purchase order checkout rent hire subscribe sign accept approve confirm sell trade bid apply deploy release merge execute run exec eval',
  writes:
    'create add append write update edit set move rename reschedule schedule insert save put patch copy assign mark modify change upsert make generate start open enable install import duplicate star pin archive restore tag label draft replace',
  reads:
    'get list search find read query show describe count check lookup view browse fetch retrieve calculate compute compare recommend summarize summarise who what when which is has can download load open analyze analyse validate verify preview inspect scan explain translate convert rank resolve navigate visit',
}

const EFFECT_OF_VERB: ReadonlyMap<string, Exclude<ToolEffect, 'identity'>> = new Map(
  (['reads', 'writes', 'commits', 'destructive', 'egress'] as const).flatMap((effect) =>
    VERBS[effect].split(' ').map((verb) => [verb, effect] as const),
  ),
)

/** Returns the effect of a verb, as in a name (`send`) or in a sentence (`Sends`), or `undefined` for another word. */
export function effectOfVerb(word: string): Exclude<ToolEffect, 'identity'> | undefined {
  const verb = word.toLowerCase()
  return (
    EFFECT_OF_VERB.get(verb) ??
    EFFECT_OF_VERB.get(verb.replace(/s$/, '')) ??
    EFFECT_OF_VERB.get(verb.replace(/es$/, ''))
  )
}

/** Words about people's identities and permissions. */
export const IDENTITY_WORDS =
  /\b(?:passwords?|credentials?|secrets?|permissions?|roles?|mfa|otp|2fa|api keys?|access tokens?|ssh keys?|user info|profile|account settings|policy|policies)\b/

/** Names of fields with a recipient. */
export const ADDRESSEE_NAME =
  /^(?:to|cc|bcc|(?:.* )?(?:recipients?|participants?|attendees?|invitees?|guests|members?|addressees?|payees?|beneficiar(?:y|ies)|emails?|email address(?:es)?|phones?|phone numbers?|iban|accounts?|account numbers?|channels?|urls?|uris?|links?|webhooks?|endpoints?|hosts?|hostnames?|domains?|handles?|chat ids?|destinations?|targets?|users?|usernames?|user ids?|reviewers?|assignees?|followers?|audience|remote))$/
export const ADDRESSEE_FORMATS: ReadonlySet<unknown> = new Set(['email', 'idn-email', 'uri', 'url', 'iri', 'hostname'])
export const ADDRESSEE_TEXT = /\b(?:e-?mail address(?:es)?|iban|phone numbers?|recipients?|urls?|webhook)\b/i
/** Names of fields with a URL: a tool that reads a URL also sends the URL's content. */
export const PLACE_NAME = /^(?:.* )?(?:urls?|uris?|links?|webhooks?|endpoints?|hosts?|hostnames?|domains?)$/
/** Names of senders and owners, who are not recipients. */
export const NO_ADDRESSEE = /^(?:from|sender|author|owner|own|my|self|current|created|reply to id)\b/

/** Words for content that only the user, the operator or a clock writes. */
export const OWN_WORDS =
  /\b(?:contacts|address book|current (?:day|date|time|user)|today|now|time|clock|balance|iban|whoami|own profile|user info(?:rmation)?|me)\b/
