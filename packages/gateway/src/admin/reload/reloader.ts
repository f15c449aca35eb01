import { endsWithin, messageOf, sha256Hex } from '@toolgate/values'
import type { ReloadOptions } from './describe.ts'
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError } from '@toolgate/core'
import { ApiFault } from '../../model/faults.ts'
import type { GatewayConfig } from '../../config/config.ts'
import { checkUsable } from '../../config/usable.ts'
import { nextTurn } from '../../util/next-turn.ts'
import type { RetiredServer } from '../../servers/fleet.ts'
import type { ReadProposed } from '../../replicas/open-replica.ts'
import type { Heart } from '../../heart/heart.ts'
import { type Revision, RULES, type Settings, withoutAsking } from '../../auth/revision.ts'
import { findEnded } from '../../auth/keyring.ts'
import { findChanges } from './changes.ts'
import type { RuleChange } from '../../model/reload.ts'
import { describeReload } from './describe.ts'
import type { Reload } from '../../model/reload.ts'
import { findUnproven } from '../../auth/tighter.ts'
import { compareAccess } from './who-gains.ts'

const NEW_CERTIFICATE: RuleChange = { section: 'listen', what: 'changed', name: 'certificate' }

/** How long calls of a changed or removed server may continue. */
const RETIRE_MS = 30_000

const PUBLISHING = 'config:published'
/** How long a publication waits for other publications. */
const PUBLISH_WAIT_MS = 30_000

/** Replaces the rules of a running gateway by those of its file, all at once or not at all. */
export class Reloader {
  readonly #heart: Heart
  readonly #onReplaced: () => void
  #before: Promise<unknown> = Promise.resolve()
  #waiting: string | undefined
  /** The salt of the hash of a text. Without it, people could guess secrets in the text. */
  readonly #salt = randomUUID()
  /** The ids of the commands that ran at the start, or when a person reloaded. No others run automatically. */
  #ran: readonly string[]

  /** `onReplaced` is called in the turn in which the rules are replaced. */
  constructor(heart: Heart, onReplaced: () => void) {
    this.#heart = heart
    this.#onReplaced = onReplaced
    this.#ran = heart.config.ran ?? []
  }

  /**
   * Reloads, one at a time. @throws {ConfigFileError} @throws {ConfigError} @throws {ApiFault} `reload_outdated`;
   * nothing changes
   */
  reload(options: ReloadOptions): Promise<Reload> {
    return options.publishes ? this.#publish(options) : this.#inTurn(() => this.#reload(options))
  }

  /** Why a watched file is not applied yet. `undefined`: it is applied, or has not been checked. */
  get waiting(): string | undefined {
    return this.#waiting
  }

  /**
   * Applies the file if it is proven to grant no additional rights. Otherwise nothing changes, and `waiting` states
   * why. Never rejects.
   */
  async tighten(): Promise<void> {
    try {
      await this.#inTurn(() => this.#tighten())
    } catch {
      // The log has the details.
      this.#waiting = 'the file has a mistake, see the log'
    }
  }

  async #tighten(): Promise<void> {
    const { host, revisions } = this.#heart
    const config = await host.read({ mayRun: this.#ran })
    if (config.notRun) return this.#wait(['secretCommands'], `not run: ${config.notRun.join(', ')}`)
    const planned = await this.#reload({ through: 'watch', isDryRun: true }, config)
    const next = revisions.next(config)
    // A receiver learns of calls.
    const asking = isDeepStrictEqual(revisions.current.asking, next.asking) ? [] : ['approvals']
    const unproven = [...findUnproven(revisions.current, next), ...asking]
    const gains = planned.access.some((one) => one.gains.length > 0) ? ['access'] : []
    if (unproven.length + gains.length > 0) return this.#wait([...unproven, ...gains], cutLines(planned.text))
    await this.#reload({ through: 'watch' }, config)
  }

  #wait(sections: readonly string[], detail: string): void {
    const why = `the file has changed and waits for "toolgate reload": it may grant more (${sections.join(', ')})`
    if (this.#waiting !== why) this.#heart.log({ level: 'warn', message: why, detail })
    this.#waiting = why
  }

  /**
   * Checks a proposed configuration. Starts nothing, and runs no command that has not run before. @throws the reason
   * why it cannot run here
   */
  async check(readProposed: ReadProposed): Promise<void> {
    const config = await readProposed({ mayRun: this.#ran })
    await this.#reload({ through: 'api', isDryRun: true }, { ...config, notRun: [] })
  }

  #inTurn<T>(reload: () => Promise<T>): Promise<T> {
    const reloading = this.#before.then(reload)
    this.#before = reloading.catch((error: unknown) => {
      this.#heart.log({ level: 'error', message: 'nothing was reloaded', detail: messageOf(error) })
    })
    return reloading
  }

  /**
   * Publishes a configuration. It does not hold the queue, as this replica must reload before the publication is
   * complete.
   */
  async #publish(options: ReloadOptions): Promise<Reload> {
    const { revisions, redact, replica } = this.#heart
    if (!replica) throw new ConfigError('reload', 'publishes only where replicas share "stores"')
    const config = await replica.readFile()
    const { text = '' } = config
    const { running } = replica.publication
    const planned = await this.#inTurn(() => this.#reload({ ...options, isDryRun: true }, config))
    if (text === running.text) return planned
    const objections = await replica.proposals.ask(text)
    const lost = objections.map(({ id, why }) => `${id} cannot run it: ${why}`)
    if (lost.length > 0 && options.isForced !== true)
      throw new ConfigError('', `nothing was published. ${lost.join('; ')}`)
    if (options.isDryRun === true) return { ...planned, text: [...planned.text, ...lost] }
    const id = await this.#publishNext(text, options, running.id)
    const { id: revision, number } = revisions.current
    const { preview: _preview, ...plan } = planned
    const reload = { ...plan, isApplied: true, revision: { id: revision, number } }
    const { redactText } = redact.with(config.secrets)
    const lines = describeReload(reload, { isDryRun: false }).map((line) => redactText(line))
    return { ...reload, text: [`published ${id}: it is in force on all replicas`, ...lost, ...lines] }
  }

  /**
   * Publishes one text at a time. With a preview, the text must still replace the configuration that it was compared
   * with.
   */
  async #publishNext(text: string, { by, preview }: ReloadOptions, seen: string): Promise<string> {
    const { replica } = this.#heart
    if (!replica) throw new ConfigError('reload', 'publishes only where replicas share "stores"')
    const { publication, lock } = replica
    const lease = await lock.acquire(PUBLISHING, { deadlineMs: PUBLISH_WAIT_MS })
    try {
      if (preview !== undefined && (await publication.latestId()) !== seen) throw outdated()
      return (await publication.publish(text, by, { session: PUBLISHING, fencingToken: lease.fencingToken })).id
    } finally {
      await lease.release()
    }
  }

  /**
   * Returns the id of a change: a configuration and what it replaces. All replicas return the same id for the same
   * change.
   */
  #nameOf(config: GatewayConfig, before: Revision, next: Revision): string {
    const inForce = this.#heart.replica?.publication.running.id ?? `${this.#salt} ${before.number}`
    return sha256Hex(JSON.stringify([inForce, config.textHash ?? next.id])).slice(0, NAME_LENGTH)
  }

  async #reload({ by, through, isDryRun = false, preview }: ReloadOptions, given?: GatewayConfig): Promise<Reload> {
    const { revisions, host, redact, door } = this.#heart
    checkRunning(door)
    const config = given ?? (await host.read())
    checkUsable(config)
    const before = revisions.current
    const next = revisions.next(config)
    const name = this.#nameOf(config, before, next)
    if (preview !== undefined && preview !== name) throw outdated()
    const serveCertificate = host.readCertificate()
    const changes = [...findChanges(before, next), ...(serveCertificate ? [NEW_CERTIFICATE] : [])]
    // The publisher has already been told, and this replica starts no calls meanwhile.
    const isAsked = changes.length > 0 && through !== 'publication'
    const comparison = isAsked ? await compareAccess(this.#heart.gate, before, next) : undefined
    const restartNeeded = findFixed(this.#heart.config, config)
    const isChanged = changes.length > 0 || !isSameSecrets(before, next)
    const isApplied = isChanged && !isDryRun
    await nextTurn()
    // The gateway may have begun to stop meanwhile, and must then start nothing.
    if (isApplied) checkRunning(door)
    if (isApplied) this.#apply(before, next, config)
    // The file is now applied.
    if (!isDryRun) [this.#waiting, this.#ran] = [undefined, config.ran ?? []]
    if (isApplied) serveCertificate?.()
    // The rules already apply, so the gained access is only reported.
    const access = (await comparison?.whoGains()) ?? []
    const { id, number } = isApplied ? next : before
    const { redactText } = redact.with(config.secrets)
    // The text of a clause may contain a filled-in secret.
    const shown = changes.map((change) => ({ ...change, name: redactText(change.name) }))
    const named = isDryRun && { preview: name }
    const reload = { isApplied, revision: { id, number }, changes: shown, access, restartNeeded, ...named }
    const text = describeReload(reload, { isDryRun }).map((line) => redactText(line))
    if (isApplied) await this.#record(text, by, through)
    const note = given || through === 'publication' ? undefined : await this.#heart.replica?.noteOnFile()
    return { ...reload, text: note === undefined ? text : [...text, note] }
  }

  /** Applies a revision in one turn, so that every decision uses either the old or the new rules. */
  #apply(before: Revision, next: Revision, config: GatewayConfig): void {
    const { revisions, redact, log, host, door } = this.#heart
    const { started, retired } = host.replace(next, () => {
      revisions.replace(next)
      redact.follow(config.secrets)
    })
    door.keys.renew()
    door.runs.renew()
    this.#onReplaced()
    revisions.end(findEnded(before.keyring, next.keyring))
    for (const upstream of started) void upstream.start()
    for (const server of retired) void this.#retire(server)
    for (const { path, message } of config.warnings ?? []) log({ level: 'warn', message: `${path}: ${message}` })
  }

  async #retire({ upstream, running }: RetiredServer): Promise<void> {
    const { config, onFault } = this.#heart
    try {
      await endsWithin(running.idle(), config.drainMs ?? RETIRE_MS)
      await upstream.close()
    } catch (error) {
      onFault(error)
    }
  }

  async #record(text: readonly string[], by: string | undefined, through: string): Promise<void> {
    const { log, stores, clock, onFault, gate } = this.#heart
    const { policyRevision, catalog } = gate
    const detail = cutLines(text, '\n')
    log({ level: 'info', message: `reloaded: ${cutLines(text)}` })
    try {
      await stores.audit.write({
        event: 'config_changed',
        reason: through,
        detail,
        wallMs: clock.wallMs(),
        policy_revision: policyRevision,
        catalog_revision: catalog.revision,
        ...(by === undefined ? {} : { user_id: by }),
      })
    } catch (error) {
      onFault(error)
    }
  }
}

/** @throws {ConfigError} */
function checkRunning({ stopping: { isStopping } }: Heart['door']): void {
  if (isStopping) throw new ConfigError('reload', 'is not possible while the gateway stops')
}

const NAME_LENGTH = 16

function outdated(): ApiFault {
  return new ApiFault(
    'reload_outdated',
    'Nothing was applied: the file, or the configuration in force, is no longer the one of this preview. Preview it again.',
  )
}

const MAX_DETAIL = 2000

function cutLines(lines: readonly string[], between = '; '): string {
  const text = lines.map((line) => (between === '\n' ? line : line.trim())).join(between)
  return text.length > MAX_DETAIL ? `${text.slice(0, MAX_DETAIL)}…` : text
}

/** Whether the secrets are the same. A rotated secret does not change the names. */
function isSameSecrets(before: Revision, next: Revision): boolean {
  return isDeepStrictEqual(before.servers, next.servers) && isDeepStrictEqual(before.callers, next.callers)
}

/** The fields that the gateway computes itself. */
const NOT_FIELDS = [
  'file',
  'text',
  'textHash',
  'secrets',
  'secretCommands',
  'notRun',
  'ran',
  'warnings',
  'places',
  'policySource',
  // It is a part of each server and issuer.
  'proxy',
] as const
const NOT_SETTINGS: ReadonlySet<string> = new Set([...RULES, ...NOT_FIELDS])

function fixed(key: string, settings: ReadonlyMap<string, unknown>): unknown {
  return key === 'approvals' ? withoutAsking(settings.get(key) as Settings['approvals']) : settings.get(key)
}

/** Returns the settings that differ and need a restart. */
function findFixed(before: Settings, config: GatewayConfig): readonly string[] {
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(config))]
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((key) => !NOT_SETTINGS.has(key) && !isDeepStrictEqual(fixed(key, old), fixed(key, now)))
    .toSorted()
}
