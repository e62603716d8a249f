#!/usr/bin/env node
// Starts the binary of the package for this system, which npm has installed beside this one.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

// The names are those of `System::npm_package` in xtask/src/dist/systems.rs.
function packageName() {
  const musl =
    process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  return `@plimsoll/${process.platform}-${process.arch}${musl ? "-musl" : ""}`;
}

function fail(text) {
  process.stderr.write(`plimsoll: ${text}\n`);
  process.exit(1);
}

function binary() {
  const name = packageName();
  const file = process.platform === "win32" ? "plimsoll.exe" : "plimsoll";
  const supported = Object.keys(require("./package.json").optionalDependencies);
  if (!supported.includes(name)) {
    fail(
      `there is no binary for ${process.platform} on ${process.arch}; ` +
        "build it with Rust: cargo install plimsoll-cli"
    );
  }
  try {
    return require.resolve(`${name}/${file}`);
  } catch {
    return fail(
      `the package ${name} is not installed; install plimsoll again, with optional dependencies`
    );
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`the binary does not start: ${error.message}`));

// A terminal sends its signals to the child as well. Those sent to this process alone are passed on.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => signal === "SIGINT" || child.kill(signal));
}
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
