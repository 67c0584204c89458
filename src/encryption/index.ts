// Everything that an application imports from 'holdfast/encryption'.

export { encryptingCodec, type EncryptingCodecOptions } from './encrypting-codec.ts'
export type { EncryptionKey, EncryptionKeys } from './keys.ts'
export { subjectKeysIn, type FolderOfSubjectKeys } from './subject-keys.ts'
export type { SubjectKeys, SubjectOptions } from './subjects.ts'
