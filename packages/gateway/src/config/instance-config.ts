import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { errnoOf, messageOf } from '@toolgate/values'
import type { ServerConfig } from './config.ts'
import type { Owner } from '../model/owner.ts'
import { UpstreamError } from '../model/upstream.ts'
import { sharedCaches } from '../util/package-caches.ts'

/** The folder of packages that instances share. No server has this name. */
const CACHES = '.caches'
const OWNER = /\$\{(user|tenant)\}/g

/** Returns whether a text contains `${user}` or `${tenant}`. */
export function mentionsOwner(text: string): boolean {
  return text.search(OWNER) !== -1
}

/** A server's configuration for one instance, with the folders that it needs. */
interface InstanceConfig {
  readonly config: ServerConfig
  readonly folders: readonly string[]
}

/**
 * Returns the configuration of one owner's instance below `root`: with its own HOME and working folder, with the folders
 * of packages that all instances share, and with the owner's name filled in.
 */
export function toInstanceConfig(
  config: ServerConfig,
  owner: Pick<Owner, 'user' | 'tenant' | 'folder'>,
  root: string,
): InstanceConfig {
  const fill = (text: string) => text.replaceAll(OWNER, (_, name: 'user' | 'tenant') => owner[name])
  const fillAll = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]))
  const headers = fillAll(config.headers)
  if (config.command === undefined) return { config: { ...config, headers }, folders: [] }
  const own = path.join(root, config.name, owner.folder)
  const home = path.join(own, 'home')
  const cwd = config.cwd === undefined ? path.join(own, 'work') : fill(config.cwd)
  const caches = path.join(root, CACHES)
  const shared = sharedCaches({ command: config.command, set: config.env, fallback: caches })
  const env = { ...shared, HOME: home, ...fillAll(config.env) }
  return {
    config: { ...config, headers, args: config.args.map(fill), env, cwd },
    folders: [caches, home, ...(cwd === config.cwd ? [] : [cwd])],
  }
}

/**
 * Creates folders that only this operating system user may read.
 *
 * @throws {UpstreamError} `upstream_down` with the name of the folder
 */
export async function makeFolders(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
    } catch (error) {
      const why = errnoOf(error) ?? messageOf(error)
      throw new UpstreamError('upstream_down', `folder "${folder}" could not be made (${why})`, { cause: error })
    }
  }
}
