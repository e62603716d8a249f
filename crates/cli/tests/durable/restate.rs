//! A Restate server for one test, in its own folder, on the loopback interface. It ends when
//! dropped.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_testkit::ChildGuard;
use tempfile::TempDir;

/// Names the program. `cargo xtask restate` installs it.
const VARIABLE: &str = "PLIMSOLL_TEST_RESTATE";

/// Longer than a busy machine takes.
const START: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Restate {
    _child: ChildGuard,
    _folder: TempDir,
    pub(crate) ingress: u16,
    pub(crate) admin: u16,
}

impl Restate {
    /// Starts one. Says so and returns `None` if no program is named.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// Starts one that signs its requests with a private key, in PEM.
    pub(crate) fn start_signing(key: &str) -> Option<Self> {
        Self::start_with(Some(key))
    }

    fn start_with(key: Option<&str>) -> Option<Self> {
        let Some(program) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
            eprintln!(
                "not tested with Restate: {VARIABLE} names no server; see `cargo xtask restate`"
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let [node, ingress, admin] = ports();
        let at = |port: u16| format!("127.0.0.1:{port}");
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(program);
        if let Some(key) = key {
            let file = folder.path().join("key.pem");
            std::fs::write(&file, key).unwrap();
            command.env("RESTATE_REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE", file);
        }
        let child = command
            .args(["--node-name", "test", "--base-dir"])
            .arg(folder.path())
            .env("DO_NOT_TRACK", "1")
            .env("RESTATE_BIND_ADDRESS", at(node))
            .env("RESTATE_INGRESS__BIND_ADDRESS", at(ingress))
            .env("RESTATE_ADMIN__BIND_ADDRESS", at(admin))
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "1")
            .env("RESTATE_LISTEN_MODE", "tcp")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            _child: ChildGuard::new(child),
            _folder: folder,
            ingress,
            admin,
        };
        let since = Instant::now();
        while !(answers(ingress, "/restate/health") && answers(admin, "/health")) {
            assert!(since.elapsed() < START, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }
}

/// Ports that are free now.
pub(crate) fn ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn answers(port: u16, path: &str) -> bool {
    use std::io::{Read, Write};
    let Ok(mut stream) = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
        return false;
    };
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut reply = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut reply).is_ok()
        && reply.starts_with("HTTP/1.1 200")
}
